// A plugin for QEMU's user mode that counts the executed instructions of a program in a file of eight bytes, which
// another process maps. Usage: `-plugin count_instructions.so,count=PATH`. Debian has no header for plugins, so this
// file declares the functions of the plugin interface in use (QEMU, docs/devel/tcg-plugins.rst). -DVERSION is the
// version of the plugin interface: 1 before QEMU 9, and 2 from then on.
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

struct qemu_plugin_tb;
typedef void (*translated_t)(uint64_t id, struct qemu_plugin_tb *block);
typedef void (*executed_t)(unsigned processor, void *data);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated_t translated);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *block, executed_t executed, int flags, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);

int qemu_plugin_version = VERSION;
static volatile uint64_t *sum;

static void executed(unsigned processor, void *count) { __atomic_fetch_add(sum, (uint64_t)count, __ATOMIC_RELAXED); }

static void translated(uint64_t id, struct qemu_plugin_tb *block) {
    qemu_plugin_register_vcpu_tb_exec_cb(block, executed, 0, (void *)(uint64_t)qemu_plugin_tb_n_insns(block));
}

int qemu_plugin_install(uint64_t id, const void *info, int count, char **arguments) {
    if (count != 1 || strncmp(arguments[0], "count=", 6) != 0) return -1;
    int file = open(arguments[0] + 6, O_RDWR);
    if (file < 0) return -1;
    sum = mmap(NULL, sizeof *sum, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (sum == MAP_FAILED) return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    return 0;
}
