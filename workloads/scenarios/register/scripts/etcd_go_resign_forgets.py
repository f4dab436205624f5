"""etcd, Go package concurrency: a Resign that fails forgets the leadership, and the key stays.

Run with etcd's Go client and server 3.4.23 and 3.5.30, Go 1.19 and 1.27 (Debian's), Python 3.11.
Needs: etcd and go in the PATH; golang-etcd-server-dev. GOPATH is /usr/share/gocode unless set.
CONTROL=1 lets the first Resign reach the server.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

from frame.etcd_go_program import show_go

PROGRAM = """
package main

import (
	"context"
	"fmt"

	"CLIENT/concurrency"
)

func main() {
	first := concurrency.NewElection(session(client, 60), "job")
	must(first.Campaign(all, "first"))
	key := first.Key()
	over, cancel := context.WithCancel(all)
	if !control {
		cancel() // as a request that times out
	}
	if err := first.Resign(over); (err == nil) != control {
		panic(fmt.Sprint("Resign returned ", err))
	}
	cancel()
	if err := first.Resign(all); err == nil && exists(key) && !elected("second") {
		fmt.Println("Resign returned an error, and when called again nil: the key exists, and " +
			"no candidate can be elected as long as the session lasts")
	}
}
"""


if __name__ == "__main__":
    show_go(PROGRAM)
