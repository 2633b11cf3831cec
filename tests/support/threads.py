"""Threads that start together."""

import threading


def run_together(*workers):
    """Run each worker in a thread of its own; all begin at once, and none may fail."""
    failures = []
    barrier = threading.Barrier(len(workers))

    def guarded(worker):
        try:
            barrier.wait()
            worker()
        except BaseException as failure:
            failures.append(failure)
            raise

    threads = [threading.Thread(target=guarded, args=(worker,)) for worker in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
