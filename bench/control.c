// SPDX-License-Identifier: GPL-2.0-only
/*
 * The benchmark's control file, oxib_bench in debugfs: a line "MEASUREMENT BYTES BURST ROUNDS" written to it takes a
 * measurement; reading it gives the last one's result.
 */

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/vmalloc.h>

#include "bench.h"

static const struct {
	const char *name;
	int (*run)(struct bench *bench);
} measurements[] = {
	{ "tx-socket-ipoib", bench_transmit_socket_ipoib },
	{ "tx-socket-floor", bench_transmit_socket_floor },
	{ "tx-queue-ipoib", bench_transmit_queue_ipoib },
	{ "tx-queue-floor", bench_transmit_queue_floor },
	{ "tx-device-single", bench_transmit_device_single },
	{ "tx-device-single-events", bench_transmit_device_single_events },
	{ "tx-device-chain", bench_transmit_device_chain },
	{ "tx-device-chain-events", bench_transmit_device_chain_events },
	{ "rx-ipoib", bench_receive_ipoib },
	{ "rx-floor", bench_receive_floor },
	{ "rx-floor-joined", bench_receive_floor_joined },
	{ "rx-device", bench_receive_device },
	{ "fabric-single", bench_fabric_single },
	{ "fabric-chain", bench_fabric_chain },
	{ "fabric-chain-events", bench_fabric_chain_events },
	{ "tx-subnet-single", bench_transmit_subnet_single },
	{ "tx-subnet-chain", bench_transmit_subnet_chain },
	{ "rx-subnet-ipoib", bench_receive_subnet_ipoib },
	{ "rx-subnet-device", bench_receive_subnet_device },
	{ "acm-loop", bench_acm_loop },
	{ "acm-cache-hit", bench_acm_cache_hit },
	{ "acm-cache-miss", bench_acm_cache_miss },
	{ "acm-table-hit", bench_acm_table_hit },
	{ "acm-table-miss", bench_acm_table_miss },
	{ "acm-neighbours-hit", bench_acm_neighbours_hit },
	{ "acm-neighbours-miss", bench_acm_neighbours_miss },
};

static DEFINE_MUTEX(one_at_a_time);
static char result[256];
static struct dentry *file;

static int run(const char *name, struct bench *bench)
{
	unsigned int i;
	int error = -EINVAL;

	for (i = 0; i < ARRAY_SIZE(measurements); i++)
		if (!strcmp(name, measurements[i].name))
			error = measurements[i].run(bench);
	if (!error && !bench->taken)
		error = -ENODATA;
	if (!error)
		bench_report(bench, result, sizeof(result));
	return error;
}

static ssize_t write(struct file *, const char __user *from, size_t length, loff_t *)
{
	struct bench bench = {};
	char line[80] = {}, name[32];
	int error;

	if (length >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, length))
		return -EFAULT;
	if (sscanf(line, "%31s %u %u %u", name, &bench.bytes, &bench.burst, &bench.rounds) != 4 ||
	    !bench.burst || bench.burst > BENCH_MAX_BURST || !bench.rounds || bench.rounds > BENCH_MAX_ROUNDS)
		return -EINVAL;
	bench.samples = vcalloc(bench.rounds, sizeof(*bench.samples));
	if (!bench.samples)
		return -ENOMEM;
	mutex_lock(&one_at_a_time);
	result[0] = '\0';
	error = run(name, &bench);
	mutex_unlock(&one_at_a_time);
	vfree(bench.samples);
	return error ?: length;
}

static ssize_t read(struct file *, char __user *to, size_t length, loff_t *offset)
{
	return simple_read_from_buffer(to, length, offset, result, strlen(result));
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = read,
	.write = write,
};

static int __init bench_init(void)
{
	file = debugfs_create_file("oxib_bench", 0600, NULL, NULL, &operations);
	return PTR_ERR_OR_ZERO(file);
}

static void __exit bench_exit(void)
{
	debugfs_remove(file);
}

module_init(bench_init);
module_exit(bench_exit);
MODULE_DESCRIPTION("Benchmark of oxib: instructions per packet");
MODULE_LICENSE("GPL");
