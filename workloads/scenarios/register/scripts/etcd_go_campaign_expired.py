"""etcd, Go package concurrency: Campaign succeeds although its session has expired.

Run with etcd's Go client and server 3.4.23 and 3.5.30, Go 1.19 and 1.27 (Debian's), Python 3.11.
Needs: etcd and go in the PATH; golang-etcd-server-dev. GOPATH is /usr/share/gocode unless set.
CONTROL=1 keeps the session of the waiting candidate alive.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

from frame.etcd_go_program import show_go

PROGRAM = """
package main

import (
	"fmt"
	"time"

	"CLIENT/concurrency"
)

func main() {
	first := concurrency.NewElection(session(client, 60), "job")
	must(first.Campaign(all, "first"))
	short := session(connect(), 2)
	second := concurrency.NewElection(short, "job")
	ended := make(chan error, 1)
	go func() { ended <- second.Campaign(all, "second") }()
	key := fmt.Sprintf("job/%x", short.Lease())
	waitUntil(func() bool { return exists(key) })
	if !control {
		short.Orphan() // its keepalives end, as in a client that is cut off
		waitUntil(func() bool { return !exists(key) })
	}
	select {
	case err := <-ended:
		panic(fmt.Sprint("Campaign ended early: ", err))
	case <-time.After(3 * time.Second):
	}
	must(first.Resign(all))
	if err := <-ended; err == nil && elected("third") {
		fmt.Println("Campaign of the second candidate returned nil when the first resigned, long " +
			"after its session had expired; a third one was elected, too")
	}
}
"""


if __name__ == "__main__":
    show_go(PROGRAM)
