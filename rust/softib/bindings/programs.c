// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verbs of programs: their memory, and the command that polls a completion queue.
 *
 * The kernel's own command for polling (IB_USER_VERBS_CMD_POLL_CQ) reads the number of the queue pair
 * out of `struct ib_qp` after the device has given up the completion. Another thread may have
 * destroyed that queue pair by then. This command copies the number while the queue is locked.
 */

#include <linux/random.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem.h>
#include <rdma/uverbs_ioctl.h>
#include <rdma/uverbs_std_types.h>

#include "inline.h"
#include "programs.h"

#define UVERBS_MODULE_NAME softib
#include <rdma/uverbs_named_ioctl.h>

u32 softib_random(void)
{
	return get_random_u32();
}

struct ib_umem *softib_umem_get(struct ib_device *device, u64 start, u64 length, int access)
{
	return ib_umem_get_va(device, start, length, access);
}

unsigned int softib_umem_runs(struct ib_umem *umem)
{
	return umem->sgt_append.sgt.orig_nents;
}

/*
 * Pages are in the direct map: RDMA devices that do virtual DMA need a kernel without high memory. Those that are one behind the
 * other there are one entry of the list.
 */
int softib_umem_each_run(struct ib_umem *umem, softib_run_fn each, void *context)
{
	struct scatterlist *run;
	int i, ret;

	for_each_sgtable_sg(&umem->sgt_append.sgt, run, i) {
		ret = each(context, (uintptr_t)page_address(sg_page(run)), run->length);
		if (ret)
			return ret;
	}
	return 0;
}

bool softib_is_own_memory(struct ib_umem *umem)
{
	return umem->owning_mm == current->mm;
}

bool softib_copy_from_program(void *to, u64 from, size_t length)
{
	return !copy_from_user(to, u64_to_user_ptr(from), length);
}

/* What ib_uverbs does then is done in any context, and takes no lock but its own. */
bool softib_tell_program_of_overrun(struct ib_cq *cq)
{
	struct ib_event event = { .device = cq->device, .element.cq = cq, .event = IB_EVENT_CQ_ERR };

	if (!cq->uobject)
		return false;
	cq->event_handler(&event, cq->cq_context);
	return true;
}

int softib_no_udata(struct ib_udata *udata)
{
	return ib_no_udata_io(udata);
}

int softib_no_udata_in(struct uverbs_attr_bundle *attrs)
{
	return ib_no_udata_io(attrs ? &attrs->driver_udata : NULL);
}

static int UVERBS_HANDLER(SOFTIB_METHOD_CQ_POLL)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uverbs_wc taken[SOFTIB_POLLED];
	const struct uverbs_attr *completions, *count;
	struct ib_cq *cq;
	u32 number;

	cq = uverbs_attr_get_obj(attrs, SOFTIB_ATTR_CQ_POLL_HANDLE);
	completions = uverbs_attr_get(attrs, SOFTIB_ATTR_CQ_POLL_COMPLETIONS);
	count = uverbs_attr_get(attrs, SOFTIB_ATTR_CQ_POLL_COUNT);
	static_assert((int)SOFTIB_WC_GRH == (int)IB_WC_GRH && (int)SOFTIB_WC_WITH_IMM == (int)IB_WC_WITH_IMM);
	static_assert((int)SOFTIB_WC_WITH_INVALIDATE == (int)IB_WC_WITH_INVALIDATE);
	static_assert((int)SOFTIB_WC_IP_CSUM_OK == (int)IB_WC_IP_CSUM_OK);
	if (IS_ERR(cq) || IS_ERR(completions) || IS_ERR(count))
		return -EINVAL;
	number = min_t(u32, completions->ptr_attr.len / sizeof(taken[0]), SOFTIB_POLLED);
	number = softib_poll_for_program(cq, number, taken);
	if (copy_to_user(u64_to_user_ptr(completions->ptr_attr.data), taken, number * sizeof(taken[0])) ||
	    copy_to_user(u64_to_user_ptr(count->ptr_attr.data), &number, sizeof(number)))
		return -EFAULT;
	return 0;
}

DECLARE_UVERBS_NAMED_METHOD(
	SOFTIB_METHOD_CQ_POLL,
	UVERBS_ATTR_IDR(SOFTIB_ATTR_CQ_POLL_HANDLE, UVERBS_OBJECT_CQ, UVERBS_ACCESS_READ, UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(SOFTIB_ATTR_CQ_POLL_COMPLETIONS,
			    UVERBS_ATTR_MIN_SIZE(sizeof(struct ib_uverbs_wc)), UA_MANDATORY),
	UVERBS_ATTR_PTR_OUT(SOFTIB_ATTR_CQ_POLL_COUNT, UVERBS_ATTR_TYPE(u32), UA_MANDATORY));

ADD_UVERBS_METHODS(softib_cq, UVERBS_OBJECT_CQ, &UVERBS_METHOD(SOFTIB_METHOD_CQ_POLL));

static const struct uapi_definition definitions[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_CQ, &softib_cq),
	{ },
};

/*
 * The commands that a program has besides those of every device. Not the kernel's own for polling,
 * see above.
 */
void softib_define_commands(struct ib_device *device)
{
	device->driver_def = definitions;
	device->uverbs_cmd_mask |=
		BIT_ULL(IB_USER_VERBS_CMD_CREATE_AH) | BIT_ULL(IB_USER_VERBS_CMD_DESTROY_AH) |
		BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ) | BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
		BIT_ULL(IB_USER_VERBS_CMD_POST_RECV) | BIT_ULL(IB_USER_VERBS_CMD_POST_SRQ_RECV);
}
