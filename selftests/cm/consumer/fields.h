/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef CM_FIELDS_H
#define CM_FIELDS_H

#include <linux/completion.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>

#define PORT 1
/* Of the first call; each call has the next one. */
#define FIRST_SERVICE 0x6f78696200010001ULL

/* The HCA of a host, by its first port. */
struct host {
	struct ib_device *device;
	const struct ib_gid_attr *gid;
	u16 lid;
};

/* The hosts that a connection is opened between: a and b are in one subnet, c is behind a router. */
enum { HOST_A, HOST_B, HOST_C, HOSTS };

/* A connection that is opened and closed. */
struct call {
	const char *name;
	int server;
	enum ib_qp_type type;
	u8 hop_limit;
	/* With a second path. */
	bool alternate;
	/* With the paths of both directions, as a local service gives them. */
	bool directions;
	/* For a GID that the server's port does not have: the server rejects it. */
	bool astray;
};

/* One end of a connection, and the last event that it was told of. */
struct end {
	const char *call;
	const char *name;
	struct ib_cm_id *id;
	struct completion told;
	struct ib_cm_event event;
	struct sa_path_rec primary, alternate;
	bool has_alternate;
	/* The service of the identifier at that time. */
	__be64 service;
	/* The GID that a rejection gives. */
	union ib_gid valid;
};

/* Opens and closes the connection of a call from host a; `number` tells it from others. */
int make_call(const struct call *call, unsigned int number, const struct host *hosts, u16 router);

int say_begin(void);
/* Whether more was said than there is room for. */
bool say_overflows(void);
void say_end(void);

/* Say a line for each field. */
void say_request(const struct end *end);
void say_reply(const struct end *end);
void say_rejection(const struct end *end);
int say_attributes(const struct end *end, enum ib_qp_state state);

#endif
