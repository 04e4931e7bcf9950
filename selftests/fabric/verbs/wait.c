// SPDX-License-Identifier: GPL-2.0-only
/* Waiting for what has to come, which is not what is tested: no time-out here is one that anything needs. */

#include <linux/delay.h>
#include <linux/module.h>

#include "verbs.h"

unsigned int patience = 60;
module_param(patience, uint, 0600);
MODULE_PARM_DESC(patience, "seconds to wait for anything, at most");

/* Evaluates the condition until it is true or the time is over, and gives its last value. */
#define eventually(condition) ({							\
	unsigned long deadline = jiffies + patience * HZ;				\
	bool true_at_last;								\
											\
	while (!(true_at_last = (condition)) && time_before(jiffies, deadline))		\
		usleep_range(200, 1000);						\
	true_at_last;									\
})

bool same(struct pair *pair, const char *what, u64 expected, u64 found)
{
	if (expected != found)
		fail(pair, "%s: expected %#llx, found %#llx", what, expected, found);
	return expected == found;
}

bool completed(struct pair *pair, struct ib_cq *cq, const char *what, struct ib_wc *wc)
{
	int polled = 0;

	if (!eventually((polled = ib_poll_cq(cq, 1, wc)) != 0)) {
		fail(pair, "%s: no completion came", what);
		return false;
	}
	return same(pair, "ib_poll_cq", 1, polled);
}

static bool with_status(struct pair *pair, struct ib_cq *cq, const char *what, enum ib_wc_status status, struct ib_wc *wc)
{
	if (!completed(pair, cq, what, wc))
		return false;
	if (wc->status != status)
		fail(pair, "%s: expected '%s', found '%s'", what, ib_wc_status_msg(status), ib_wc_status_msg(wc->status));
	return wc->status == status;
}

bool sent(struct pair *pair, struct side *side, enum ib_wc_status status)
{
	struct ib_wc wc = {};

	return with_status(pair, side->send_cq, "the request", status, &wc);
}

bool sent_well(struct pair *pair, struct side *side, unsigned int count)
{
	while (count--)
		if (!sent(pair, side, IB_WC_SUCCESS))
			return false;
	return true;
}

bool received_with(struct pair *pair, struct side *side, enum ib_wc_status status)
{
	struct ib_wc wc = {};

	return with_status(pair, side->recv_cq, "the receive", status, &wc);
}

bool received(struct pair *pair, struct side *side, u32 length, struct ib_wc *wc)
{
	struct ib_wc ours = {};

	wc = wc ?: &ours;
	return with_status(pair, side->recv_cq, "the receive", IB_WC_SUCCESS, wc) &&
	       same(pair, "bytes received", length, wc->byte_len) && same(pair, "the completion's queue pair", (uintptr_t)side->qp, (uintptr_t)wc->qp);
}

/* Only at this moment: something that comes later has to be waited for first. */
bool nothing_completed(struct pair *pair, struct ib_cq *cq, const char *what)
{
	struct ib_wc wc = {};

	if (ib_poll_cq(cq, 1, &wc) == 0)
		return true;
	fail(pair, "%s: a completion that should not be: '%s'", what, ib_wc_status_msg(wc.status));
	return false;
}

bool happened(struct pair *pair, struct side *side, enum ib_event_type event)
{
	if (eventually(test_bit(event, &side->events)))
		return true;
	fail(pair, "%s: the event '%s' did not come", side->name, ib_event_msg(event));
	return false;
}

bool notified(struct pair *pair, const char *what, int number)
{
	if (eventually(atomic_read(&pair->b.recv_notices) >= number))
		/* And not once more. */
		msleep(50);
	return same(pair, what, number, atomic_read(&pair->b.recv_notices));
}

bool reached(struct pair *pair, struct side *side, enum ib_qp_state state)
{
	if (eventually(state_of(side) == state))
		return true;
	fail(pair, "%s: the queue pair's state: expected %d, found %d", side->name, state, state_of(side));
	return false;
}
