// SPDX-License-Identifier: GPL-2.0-only
/*
 * verbs_test in debugfs: "DEVICE DEVICE GROUP [LID LID [ROUTERS]]" written to it runs a group's tests, or all of them, with
 * side a on the one device and side b on the other, which may be the same. The LIDs are those of routers' ports, where each
 * side sends to; there may be more than one router on the way. Reading it gives the results, as TAP without numbers.
 */

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_buf.h>
#include <linux/vmalloc.h>

#include "verbs.h"

#define RESULTS (64 * 1024)
#define DEVICES 16

static const struct group *const groups[] = {
	&reliable_group, &unreliable_group, &datagram_group, &memory_group,
	&queue_group, &refused_group, &failing_group, &offload_group,
};

static DEFINE_MUTEX(one_at_a_time);
static struct ib_device *devices[DEVICES];
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
		/* What is sent from two processors may change its order, and tests count on it. */
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

static struct ib_device *find_device(const char *name)
{
	unsigned int i;

	for (i = 0; i < DEVICES; i++)
		if (devices[i] && !strcmp(name, dev_name(&devices[i]->dev)))
			return devices[i];
	return NULL;
}

static int run(const char *group, const struct pair *sides)
{
	unsigned int i, j;
	int error = -EINVAL;

	for (i = 0; i < ARRAY_SIZE(groups); i++) {
		if (strcmp(group, "all") && strcmp(group, groups[i]->name))
			continue;
		for (j = 0; j < groups[i]->count; j++)
			run_test(groups[i], &groups[i]->tests[j], sides);
		error = 0;
	}
	return error;
}

static ssize_t write(struct file *opened, const char __user *from, size_t length, loff_t *offset)
{
	char line[160] = {}, first[IB_DEVICE_NAME_MAX], second[IB_DEVICE_NAME_MAX], group[16];
	struct pair sides = { .a.name = "a", .b.name = "b" };
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
	sides.a.device = find_device(first);
	sides.b.device = find_device(second);
	seq_buf_clear(&results);
	error = sides.a.device && sides.b.device ? run(group, &sides) : -ENODEV;
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

	mutex_lock(&one_at_a_time);
	for (i = 0; i < DEVICES && error; i++)
		if (!devices[i]) {
			devices[i] = device;
			error = 0;
		}
	mutex_unlock(&one_at_a_time);
	return error;
}

/* A test that runs comes to its end first. */
static void remove_device(struct ib_device *device, void *data)
{
	unsigned int i;

	mutex_lock(&one_at_a_time);
	for (i = 0; i < DEVICES; i++)
		if (devices[i] == device)
			devices[i] = NULL;
	mutex_unlock(&one_at_a_time);
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
