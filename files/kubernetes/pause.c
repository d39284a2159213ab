/* Copyright (c) 2026, colocation.testbed contributors
 * GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
 * SPDX-License-Identifier: GPL-3.0-or-later
 *
 * First process of a pod's sandbox: holds its namespaces, collects orphans, ends when it is asked to. */
#include <signal.h>
#include <sys/wait.h>

int main(void)
{
	sigset_t wanted;
	int number;

	sigemptyset(&wanted);
	sigaddset(&wanted, SIGTERM);
	sigaddset(&wanted, SIGINT);
	sigaddset(&wanted, SIGCHLD);
	sigprocmask(SIG_BLOCK, &wanted, 0);
	while (sigwait(&wanted, &number) == 0 && number == SIGCHLD)
		while (waitpid(-1, 0, WNOHANG) > 0)
			;
	return 0;
}
