// SPDX-License-Identifier: GPL-2.0-only
/*
 * What completions, queue pairs and keys of datagrams must never show a program or let it do: the number of a queue pair that is
 * gone, flags by the kernel's numbers, an overrun that is told twice, a queue pair of a kind that softib does not have, a
 * privileged Q_Key of a request. Prints a line for each case, `ok` or `not ok`, and a description.
 *
 * completions DEVICE
 */

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "command.h"
#include "pair.h"
#include "report.h"

#define QKEY 0x1234
/* Q_Keys with this bit are for the privileged; in a request it means the queue pair's own. */
#define PRIVILEGED 0x80000000
/* Queue pairs that end while another thread polls. */
#define ENDED 300

/* --- flags --- */

static int flags_of_next(struct side *side)
{
	struct ibv_wc wc = {};

	return next_completion(side->cq, &wc) && wc.status == IBV_WC_SUCCESS ? (int)wc.wc_flags : -1;
}

static void immediate_data(void)
{
	struct ibv_sge sge = { .addr = (uintptr_t)a.memory, .length = 8, .lkey = a.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(7) }, *bad;

	join();
	must(!post_receive(&b, b.memory, SIDE_SIZE, b.mr->lkey), "a receive");
	must(!ibv_post_send(a.qp, &wr, &bad), "a send with immediate data");
	report_number(IBV_WC_WITH_IMM, flags_of_next(&b), "a completion says that it has immediate data, and no more");
	next_status(&a);
	must(!post_receive(&b, b.memory, SIDE_SIZE, b.mr->lkey), "a receive");
	must(!post_send(&a, a.memory, 8, a.mr->lkey, 0), "a send");
	report_number(0, flags_of_next(&b), "that of a plain send has no flags");
	next_status(&a);
}

static uint16_t sum(const void *bytes, size_t length, uint32_t from)
{
	const uint16_t *words = bytes;

	for (; length; length -= 2)
		from += *words++;
	while (from >> 16)
		from = (from & 0xffff) + (from >> 16);
	return ~from;
}

/* An IPv4 packet with the header of IP over InfiniBand. Returns its length. */
static uint32_t write_ipv4(char *to)
{
	/* A UDP datagram from 10.0.0.1 to 10.0.0.2 without data, and without a checksum of its own. */
	uint16_t words[] = { htons(0x0800), 0, htons(0x4500), htons(28), 0, 0, htons(0x4011), 0, htons(0x0a00), htons(1),
			     htons(0x0a00), htons(2), htons(1000), htons(1000), htons(8), 0 };

	words[7] = sum(words + 2, 20, 0);
	words[15] = sum(words + 12, 8, sum(words + 8, 8, htons(17) + htons(8)) ^ 0xffff);
	memcpy(to, words, sizeof(words));
	return sizeof(words);
}

struct sender {
	struct ibv_qp *qp;
	struct ibv_ah *ah;
};

static struct sender make_sender(int is_global)
{
	struct ibv_ah_attr attr = { .dlid = port.lid, .port_num = 1, .is_global = is_global, .grh = { .dgid = gid, .hop_limit = 1 } };
	struct sender sender = { make_qp(&a, IBV_QPT_UD), ibv_create_ah(a.pd, &attr) };

	must(sender.qp && sender.ah && !datagrams_to_rts(sender.qp, QKEY), "a sender of datagrams");
	return sender;
}

static void end_sender(struct sender sender)
{
	must(!ibv_destroy_qp(sender.qp) && !ibv_destroy_ah(sender.ah), "it goes");
}

static void send_to(struct sender sender, uint32_t number, uint32_t qkey, uint32_t length)
{
	struct ibv_sge sge = { .addr = (uintptr_t)a.memory, .length = length, .lkey = a.mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND }, *bad;

	wr.wr.ud.ah = sender.ah;
	wr.wr.ud.remote_qpn = number;
	wr.wr.ud.remote_qkey = qkey;
	must(!ibv_post_send(sender.qp, &wr, &bad), "a datagram");
	must(next_status(&a) == IBV_WC_SUCCESS, "it leaves");
}

/* The flags of the receive of a datagram, or -1. */
static int flags_of_datagram(int is_global, uint32_t length)
{
	struct sender sender = make_sender(is_global);
	struct ibv_qp *own = b.qp;
	int flags;

	b.qp = make_qp(&b, IBV_QPT_UD);
	must(b.qp && !datagrams_to_rts(b.qp, QKEY) && !post_receive(&b, b.memory, SIDE_SIZE, b.mr->lkey), "a receiver");
	send_to(sender, b.qp->qp_num, QKEY, length);
	flags = flags_of_next(&b);
	must(!ibv_destroy_qp(b.qp), "the receiver goes");
	b.qp = own;
	end_sender(sender);
	return flags;
}

static void datagram_flags(void)
{
	struct ibv_device_attr attr;
	uint32_t length;

	memset(a.memory, 'a', SIDE_SIZE);
	report_number(0, flags_of_datagram(0, 64), "that of a datagram without a global route header has none");
	report_number(IBV_WC_GRH, flags_of_datagram(1, 64), "that of one with it says so");
	must(!ibv_query_device(context, &attr), "its attributes");
	report(!!(attr.device_cap_flags & IBV_DEVICE_UD_IP_CSUM), "the HCA computes checksums");
	length = write_ipv4(a.memory);
	report_number(IBV_WC_IP_CSUM_OK, flags_of_datagram(0, length), "of an IPv4 packet it says that checksums are right");
	a.memory[length - 1]++;
	report_number(0, flags_of_datagram(0, length), "and does not if they are wrong");
}

/* --- queue pairs that are gone --- */

#define NUMBERS (1 << 24)

/* How many queue pairs had ended when that of a number had: 0 while it is there. */
static _Atomic uint32_t ended_as[NUMBERS];
static _Atomic uint32_t ended;
static _Atomic int done;
static _Atomic uint32_t seen, ghosts;

static void *poll_all(void *nothing)
{
	struct ibv_wc wc[4];
	uint32_t before, when;
	int count, i, last = 0;

	while (!last) {
		last = atomic_load(&done);
		before = atomic_load(&ended);
		count = ibv_poll_cq(a.cq, 4, wc);
		must(count >= 0, "a poll");
		for (i = 0; i < count; i++) {
			when = atomic_load(&ended_as[wc[i].qp_num & (NUMBERS - 1)]);
			ghosts += when && when <= before;
			seen++;
		}
	}
	return nothing;
}

/* With completions of receives that are flushed. */
static struct ibv_qp *make_full(void)
{
	struct ibv_qp *own = a.qp, *qp = make_qp(&a, IBV_QPT_RC);
	int i;

	must(qp && !to_init(qp), "a queue pair");
	must(!ibv_modify_qp(qp, &(struct ibv_qp_attr){ .qp_state = IBV_QPS_ERR }, IBV_QP_STATE), "it fails");
	atomic_store(&ended_as[qp->qp_num], 0);
	a.qp = qp;
	for (i = 0; i < 4; i++)
		must(!post_receive(&a, a.memory, 8, a.mr->lkey), "a receive");
	a.qp = own;
	return qp;
}

static void end_full(struct ibv_qp *qp)
{
	uint32_t number = qp->qp_num;

	must(!ibv_destroy_qp(qp), "a queue pair goes");
	atomic_store(&ended_as[number], atomic_load(&ended) + 1);
	atomic_fetch_add(&ended, 1);
}

static void gone_queue_pairs(void)
{
	struct ibv_qp *qp;
	struct ibv_wc wc;
	pthread_t poller;
	int i;

	qp = make_full();
	must(ibv_poll_cq(a.cq, 1, &wc) == 1, "a completion");
	report(wc.qp_num == qp->qp_num, "a completion has the number of its queue pair");
	end_full(qp);
	report_number(0, ibv_poll_cq(a.cq, 1, &wc), "with its queue pair the others go");
	must(!pthread_create(&poller, NULL, poll_all, NULL), "a thread");
	for (i = 0; i < ENDED; i++)
		end_full(make_full());
	atomic_store(&done, 1);
	must(!pthread_join(poller, NULL), "the thread ends");
	report_number(0, ghosts, "no completion names a queue pair that is gone, whoever polls meanwhile");
	report(seen > 0, "completions of some were polled before");
	printf("# %u completions of %d\n", (unsigned int)seen, 4 * ENDED);
}

/* --- overruns --- */

/* The events that are there, of completion queues that overran. */
static int overrun_events(void)
{
	struct pollfd file = { .fd = context->async_fd, .events = POLLIN };
	struct ibv_async_event event;
	int count = 0;

	while (poll(&file, 1, 200) == 1 && !ibv_get_async_event(context, &event)) {
		count += event.event_type == IBV_EVENT_CQ_ERR;
		ibv_ack_async_event(&event);
	}
	return count;
}

static void overruns(void)
{
	struct ibv_cq *own = a.cq, *small = ibv_create_cq(context, 1, NULL, NULL, 0);
	struct side c = a;
	struct ibv_wc wc;
	int i;

	must(small != NULL, "a completion queue of one entry");
	a.cq = small;
	c.qp = make_full();
	a.cq = own;
	report_number(1, overrun_events(), "a program is told once that a completion queue overran, by however much");
	must(ibv_poll_cq(small, 1, &wc) == 1, "the completion that there was room for");
	for (i = 0; i < 20; i++)
		must(!post_receive(&c, a.memory, 8, a.mr->lkey), "a receive");
	report_number(0, overrun_events(), "and not again");
	must(!ibv_destroy_qp(c.qp) && !ibv_destroy_cq(small), "they go");
}

/* --- kinds of queue pairs --- */

static int create_error(int kind, int is_extended)
{
	struct ib_uverbs_create_qp plain = {
		.pd_handle = a.pd->handle, .send_cq_handle = a.cq->handle, .recv_cq_handle = a.cq->handle, .max_send_wr = 1,
		.max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .qp_type = kind,
	};
	struct ib_uverbs_ex_create_qp extended = {
		.pd_handle = a.pd->handle, .send_cq_handle = a.cq->handle, .recv_cq_handle = a.cq->handle, .max_send_wr = 1,
		.max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .qp_type = kind,
	};
	struct ib_uverbs_create_qp_resp made;
	struct ib_uverbs_ex_create_qp_resp extended_made;
	struct command command = { "", IB_USER_VERBS_CMD_CREATE_QP, &plain, sizeof(plain), &made, sizeof(made) };

	if (is_extended)
		command = (struct command){ "", EXTENDED(CREATE_QP), &extended, sizeof(extended), &extended_made,
					    sizeof(extended_made) };
	return execute(context->cmd_fd, &command, &(struct data){});
}

static void kinds(void)
{
	/* Of those with EINVAL ib_uverbs knows that a program cannot have them, or not like that. */
	static const struct {
		const char *name;
		int number, error;
	} kinds[] = {
		{ "SMI", 0, EINVAL }, { "GSI", 1, EINVAL }, { "RAW_IPV6", 5, EINVAL }, { "RAW_ETHERTYPE", 6, EINVAL },
		{ "RAW_PACKET", IBV_QPT_RAW_PACKET, EOPNOTSUPP }, { "XRC_INI", IBV_QPT_XRC_SEND, EOPNOTSUPP },
		{ "XRC_TGT, without completion queues or a domain", IBV_QPT_XRC_RECV, EINVAL },
		{ "DRIVER", IBV_QPT_DRIVER, EOPNOTSUPP }, { "none at all", 200, EINVAL },
	};
	char text[100];
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(text, sizeof(text), "no queue pair of the kind %s", kinds[i].name);
		report_number(kinds[i].error, create_error(kinds[i].number, 0), text);
		report_number(kinds[i].error, create_error(kinds[i].number, 1), text);
	}
}

/* --- Q_Keys --- */

/* Whether the receiver gets a datagram of that key in the request. */
static int arrives(struct sender sender, struct ibv_qp *receiver, uint32_t qkey)
{
	struct ibv_qp *own = b.qp;
	struct ibv_wc wc;
	int arrived;

	b.qp = receiver;
	must(!post_receive(&b, b.memory, SIDE_SIZE, b.mr->lkey), "a receive");
	b.qp = own;
	send_to(sender, receiver->qp_num, qkey, 64);
	usleep(50000);
	arrived = ibv_poll_cq(b.cq, 1, &wc) == 1 && wc.status == IBV_WC_SUCCESS;
	return arrived;
}

/* Returns the error of a change to a privileged Q_Key by a process without CAP_NET_RAW, with a context of its own. */
static int change_without_right(const char *name)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {};
	pid_t process = fork();
	int status;

	if (!process) {
		must(!syscall(SYS_capset, &header, data), "no rights");
		open_device(name);
		make_side(&a, IBV_ACCESS_LOCAL_WRITE);
		a.qp = make_qp(&a, IBV_QPT_UD);
		_exit(a.qp ? datagrams_to_rts(a.qp, PRIVILEGED | 1) : 255);
	}
	return waitpid(process, &status, 0) == process && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void qkeys(const char *name)
{
	struct sender sender = make_sender(0);
	struct ibv_qp *privileged = make_qp(&b, IBV_QPT_UD), *plain = make_qp(&b, IBV_QPT_UD);

	must(privileged && plain, "receivers");
	must(!datagrams_to_rts(privileged, PRIVILEGED | QKEY) && !datagrams_to_rts(plain, QKEY), "they are ready");
	report(!arrives(sender, privileged, PRIVILEGED | QKEY), "a privileged Q_Key in a request is not sent");
	report(arrives(sender, plain, PRIVILEGED | 1), "the queue pair's own is");
	must(!ibv_destroy_qp(privileged) && !ibv_destroy_qp(plain), "they go");
	end_sender(sender);
	report_number(EPERM, change_without_right(name), "no queue pair gets a privileged Q_Key without CAP_NET_RAW");
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";

	setvbuf(stdout, NULL, _IOLBF, 0);
	open_device(name);
	make_side(&a, IBV_ACCESS_LOCAL_WRITE);
	make_side(&b, IBV_ACCESS_LOCAL_WRITE);
	immediate_data();
	datagram_flags();
	gone_queue_pairs();
	overruns();
	kinds();
	qkeys(name);
	/* The objects are the kernel's to free. */
	puts("end");
	return 0;
}
