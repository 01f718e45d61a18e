/* nsbt: runs a program in a network namespace, with Bluetooth sockets.
 *
 *     nsbt NAMESPACE PROGRAM [ARGUMENT...]          NAMESPACE: a file such as /run/netns/box
 *
 * Linux has Bluetooth sockets in the initial network namespace only: elsewhere socket(AF_BLUETOOTH, ...) fails with
 * EAFNOSUPPORT. A descriptor that was created outside works inside, though. A seccomp filter therefore stops only the
 * program's socket() calls for AF_BLUETOOTH, and passes them to this process, which stays in the initial namespace.
 * This process creates the socket and installs it in the program. The program may be any unmodified binary, also a
 * static one.
 *
 * Guarantees of this process to its parent:
 *   - its exit status is the program's (128 + signal if a signal ended it);
 *   - SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 sent to this process reach the program;
 *   - when it dies in any way, SIGKILL included, the program is killed at once: the program is a child that asked for
 *     SIGKILL at its parent's death. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_START = 126 };

static void fail(const char *what)
{
	fprintf(stderr, "nsbt: %s: %s\n", what, strerror(errno));
	exit(CANNOT_START);
}

/* ---- the filter's descriptor travels from the child to the parent ------------------------------------------------ */

struct passed_descriptor {
	char byte;
	struct iovec data;
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr message;
};

static void prepare(struct passed_descriptor *passed)
{
	memset(passed, 0, sizeof *passed);
	passed->data = (struct iovec){ &passed->byte, 1 };
	passed->message = (struct msghdr){
		.msg_iov = &passed->data,
		.msg_iovlen = 1,
		.msg_control = passed->control.space,
		.msg_controllen = sizeof passed->control.space,
	};
}

static int send_descriptor(int channel, int descriptor)
{
	struct passed_descriptor passed;

	prepare(&passed);
	passed.control.header.cmsg_level = SOL_SOCKET;
	passed.control.header.cmsg_type = SCM_RIGHTS;
	passed.control.header.cmsg_len = CMSG_LEN(sizeof descriptor);
	memcpy(CMSG_DATA(&passed.control.header), &descriptor, sizeof descriptor);
	return sendmsg(channel, &passed.message, 0) == 1 ? 0 : -1;
}

static int receive_descriptor(int channel)
{
	struct passed_descriptor passed;
	struct cmsghdr *header;
	int descriptor;

	prepare(&passed);
	if (recvmsg(channel, &passed.message, MSG_CMSG_CLOEXEC) != 1)
		return -1;
	header = CMSG_FIRSTHDR(&passed.message);
	if (!header || header->cmsg_type != SCM_RIGHTS)
		return -1;
	memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
	return descriptor;
}

/* ---- the child ---------------------------------------------------------------------------------------------------- */

/* Every socket(AF_BLUETOOTH, ...) from now on waits for an answer through the returned descriptor. */
static int install_filter(void)
{
	struct sock_filter instructions[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_socket, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_BLUETOOTH, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof instructions / sizeof *instructions, instructions };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -1;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
}

static void become_program(const char *namespace, char **command, int channel, pid_t parent, const sigset_t *signals)
{
	int descriptor, listener;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		fail("PR_SET_PDEATHSIG");
	if (getppid() != parent) /* the parent died before the line above */
		exit(CANNOT_START);
	descriptor = open(namespace, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0 || setns(descriptor, CLONE_NEWNET))
		fail(namespace);
	listener = install_filter();
	if (listener < 0)
		fail("seccomp");
	if (send_descriptor(channel, listener))
		fail("sendmsg");
	close(listener);
	close(channel);
	sigprocmask(SIG_SETMASK, signals, NULL);
	execvp(command[0], command);
	fail(command[0]);
}

/* ---- the parent --------------------------------------------------------------------------------------------------- */

static void answer(int listener)
{
	struct seccomp_notif request;
	int descriptor, type, protocol;

	memset(&request, 0, sizeof request);
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request))
		return; /* the caller was interrupted or died meanwhile */
	type = (int)request.data.args[1];
	protocol = (int)request.data.args[2];
	descriptor = socket(AF_BLUETOOTH, type | SOCK_CLOEXEC, protocol);
	if (descriptor >= 0) {
		struct seccomp_notif_addfd added = {
			.id = request.id,
			.flags = SECCOMP_ADDFD_FLAG_SEND, /* installs and answers in one step */
			.srcfd = descriptor,
			.newfd_flags = type & SOCK_CLOEXEC ? O_CLOEXEC : 0,
		};
		ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &added);
		close(descriptor);
	} else {
		struct seccomp_notif_resp refused = { .id = request.id, .error = -errno };
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &refused);
	}
}

static int exit_status(int status)
{
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int count, char **arguments)
{
	int channel[2], listener, signals, status;
	sigset_t handled, inherited;
	pid_t parent = getpid(), child;

	if (count < 3) {
		fprintf(stderr, "usage: nsbt NAMESPACE PROGRAM [ARGUMENT...]\n");
		return CANNOT_START;
	}
	sigemptyset(&handled);
	sigaddset(&handled, SIGCHLD);
	sigaddset(&handled, SIGTERM);
	sigaddset(&handled, SIGINT);
	sigaddset(&handled, SIGHUP);
	sigaddset(&handled, SIGUSR1);
	sigaddset(&handled, SIGUSR2);
	sigprocmask(SIG_BLOCK, &handled, &inherited);
	signals = signalfd(-1, &handled, SFD_CLOEXEC);
	if (signals < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel))
		fail("setup");

	child = fork();
	if (child < 0)
		fail("fork");
	if (child == 0)
		become_program(arguments[1], arguments + 2, channel[1], parent, &inherited);
	close(channel[1]);
	listener = receive_descriptor(channel[0]);
	close(channel[0]);
	if (listener < 0) { /* the child has printed the reason */
		waitpid(child, &status, 0);
		return CANNOT_START;
	}

	struct pollfd waits[] = { { .fd = signals, .events = POLLIN }, { .fd = listener, .events = POLLIN } };
	for (;;) {
		if (poll(waits, 2, -1) < 0)
			continue;
		if (waits[1].revents & POLLIN)
			answer(listener);
		else if (waits[1].revents)
			waits[1].fd = -1; /* no process is left under the filter */
		if (waits[0].revents & POLLIN) {
			struct signalfd_siginfo arrived;

			if (read(signals, &arrived, sizeof arrived) != sizeof arrived)
				continue;
			if (arrived.ssi_signo != SIGCHLD)
				kill(child, (int)arrived.ssi_signo);
			else if (waitpid(child, &status, WNOHANG) == child)
				return exit_status(status);
		}
	}
}
