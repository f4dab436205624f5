"""etcd, Go package concurrency: Mutex.Lock succeeds although its session has expired.

Run with etcd's Go client and server 3.4.23, Go 1.19 (Debian's), Python 3.11. 3.5.30
returns an error.
Needs: etcd and go in the PATH; golang-etcd-server-dev. GOPATH is /usr/share/gocode unless set.
CONTROL=1 keeps the session of the waiting client alive.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

from frame.etcd_go_program import show_go

PROGRAM = """
package main

import (
	"context"
	"fmt"
	"time"

	"CLIENT/concurrency"
)

// locked returns whether a client with a session of its own is granted the lock within three seconds.
func locked() bool {
	soon, cancel := context.WithTimeout(all, 3*time.Second)
	defer cancel()
	return concurrency.NewMutex(session(client, 60), "job").Lock(soon) == nil
}

func main() {
	first := concurrency.NewMutex(session(client, 60), "job")
	must(first.Lock(all))
	short := session(connect(), 2)
	second := concurrency.NewMutex(short, "job")
	ended := make(chan error, 1)
	go func() { ended <- second.Lock(all) }()
	key := fmt.Sprintf("job/%x", short.Lease())
	waitUntil(func() bool { return exists(key) })
	if !control {
		short.Orphan() // its keepalives end, as in a client that is cut off
		waitUntil(func() bool { return !exists(key) })
	}
	must(first.Unlock(all))
	if err := <-ended; err == nil && locked() {
		fmt.Println("Lock of the second client returned nil although its session had expired; a " +
			"third one was granted the lock, too")
	}
}
"""


if __name__ == "__main__":
    show_go(PROGRAM)
