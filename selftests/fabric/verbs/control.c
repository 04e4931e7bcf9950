// SPDX-License-Identifier: GPL-2.0-only
/*
 * verbs_test in debugfs: "DEVICE DEVICE GROUP [LID LID [ROUTERS]]" written to it runs a group's tests, or all of them, with
 * side a on the one device and side b on the other, which may be the same. The LIDs are those of routers' ports, where each
 * side sends to; there may be more than one router on the way. Reading it gives the results, as TAP without numbers.
 */

#include <linux/atomic.h>
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_buf.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>

#include "verbs.h"

#define RESULTS (64 * 1024)
#define DEVICES 16

static const struct group *const groups[] = {
	&reliable_group, &unreliable_group, &datagram_group, &memory_group,
	&queue_group, &refused_group, &failing_group, &limits_group, &offload_group,
};

/* A device that tests can be run on. */
struct place {
	struct ib_device *device;
	/* It goes away when the test that uses it has ended: no other begins. */
	bool leaves;
	atomic_t users;
};

static DEFINE_MUTEX(one_at_a_time);
/* Not held while a test runs: all that ib_core does waits for a device that comes. */
static DEFINE_MUTEX(places_lock);
static struct place places[DEVICES];
static DECLARE_WAIT_QUEUE_HEAD(place_left);
static struct ib_client client;
static struct seq_buf results;
static struct dentry *file;

void fail(struct pair *pair, const char *format, ...)
{
	va_list arguments;

	if (failed(pair))
		return;
	va_start(arguments, format);
	vscnprintf(pair->failure, sizeof(pair->failure), format, arguments);
	va_end(arguments);
}

bool failed(const struct pair *pair)
{
	return pair->failure[0] || pair->left_out;
}

static void run_test(const struct group *group, const struct test *test, const struct pair *sides)
{
	struct pair *pair = kmemdup(sides, sizeof(*sides), GFP_KERNEL);

	if (!pair) {
		seq_buf_printf(&results, "not ok - %s: %s\n# no memory\n", group->name, test->name);
		return;
	}
	pair->setup = &test->setup;
	if (pair_open(pair)) {
		/* On RoCE, what is sent from two processors may change its order, and tests count on it. */
		migrate_disable();
		test->run(pair);
		migrate_enable();
	}
	pair_close(pair);
	if (pair->left_out)
		seq_buf_printf(&results, "ok - %s: %s # SKIP %s\n", group->name, test->name, pair->failure);
	else if (failed(pair))
		seq_buf_printf(&results, "not ok - %s: %s\n# %s\n", group->name, test->name, pair->failure);
	else
		seq_buf_printf(&results, "ok - %s: %s\n", group->name, test->name);
	kfree(pair);
}

static struct place *find_place(const char *name)
{
	unsigned int i;

	for (i = 0; i < DEVICES; i++)
		if (places[i].device && !places[i].leaves && !strcmp(name, dev_name(&places[i].device->dev)))
			return &places[i];
	return NULL;
}

/* Takes the device of that name for tests; NULL if there is none. */
static struct place *enter(const char *name)
{
	struct place *place;

	mutex_lock(&places_lock);
	place = find_place(name);
	if (place)
		atomic_inc(&place->users);
	mutex_unlock(&places_lock);
	return place;
}

static void leave(struct place *place)
{
	if (place && atomic_dec_and_test(&place->users))
		wake_up_all(&place_left);
}

static int run_group(const struct group *group, const struct pair *sides, const struct place *a, const struct place *b)
{
	unsigned int i;

	for (i = 0; i < group->count; i++) {
		if (READ_ONCE(a->leaves) || READ_ONCE(b->leaves))
			return -ENODEV;
		run_test(group, &group->tests[i], sides);
	}
	return 0;
}

static int run(const char *name, struct pair *sides, const struct place *a, const struct place *b)
{
	unsigned int i;
	int error = -EINVAL;

	sides->a.device = a->device;
	sides->b.device = b->device;
	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		if (strcmp(name, "all") && strcmp(name, groups[i]->name))
			continue;
		error = run_group(groups[i], sides, a, b);
		if (error)
			break;
	}
	return error;
}

static ssize_t write(struct file *opened, const char __user *from, size_t length, loff_t *offset)
{
	char line[160] = {}, first[IB_DEVICE_NAME_MAX], second[IB_DEVICE_NAME_MAX], group[16];
	struct pair sides = { .a.name = "a", .b.name = "b" };
	struct place *a, *b;
	int error, words;

	if (length >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, length))
		return -EFAULT;
	words = sscanf(line, "%63s %63s %15s %hu %hu %hhu", first, second, group, &sides.a.router_lid,
		       &sides.b.router_lid, &sides.routers);
	if (words < 3)
		return -EINVAL;
	if (words == 5)
		sides.routers = 1;
	mutex_lock(&one_at_a_time);
	a = enter(first);
	b = enter(second);
	seq_buf_clear(&results);
	error = a && b ? run(group, &sides, a, b) : -ENODEV;
	leave(a);
	leave(b);
	mutex_unlock(&one_at_a_time);
	return error ?: length;
}

static ssize_t read(struct file *opened, char __user *to, size_t length, loff_t *offset)
{
	return simple_read_from_buffer(to, length, offset, results.buffer, seq_buf_used(&results));
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.read = read,
	.write = write,
};

static int add_device(struct ib_device *device)
{
	unsigned int i;
	int error = -ENOSPC;

	mutex_lock(&places_lock);
	for (i = 0; i < DEVICES && error; i++)
		if (!places[i].device) {
			places[i] = (struct place) { .device = device };
			ib_set_client_data(device, &client, &places[i]);
			error = 0;
		}
	mutex_unlock(&places_lock);
	return error;
}

/* A test that runs comes to its end first. */
static void remove_device(struct ib_device *device, void *data)
{
	struct place *place = data;

	mutex_lock(&places_lock);
	WRITE_ONCE(place->leaves, true);
	mutex_unlock(&places_lock);
	wait_event(place_left, !atomic_read(&place->users));
	mutex_lock(&places_lock);
	place->device = NULL;
	mutex_unlock(&places_lock);
}

static struct ib_client client = {
	.name = "verbs_test",
	.add = add_device,
	.remove = remove_device,
};

static int __init start(void)
{
	char *memory = vzalloc(RESULTS);
	int error;

	if (!memory)
		return -ENOMEM;
	seq_buf_init(&results, memory, RESULTS);
	error = ib_register_client(&client);
	if (error) {
		vfree(memory);
		return error;
	}
	file = debugfs_create_file("verbs_test", 0600, NULL, NULL, &operations);
	return 0;
}

static void __exit stop(void)
{
	debugfs_remove(file);
	ib_unregister_client(&client);
	vfree(results.buffer);
}

module_init(start);
module_exit(stop);
MODULE_DESCRIPTION("Test of an RDMA device's verbs");
MODULE_LICENSE("GPL");
