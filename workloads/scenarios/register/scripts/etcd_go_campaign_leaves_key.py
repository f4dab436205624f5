"""etcd, Go package concurrency: a Campaign that returns an error leaves its key in the queue.

Run with etcd's Go client and server 3.4.23 and 3.5.30, Go 1.19 and 1.27 (Debian's), Python 3.11.
Needs: etcd and go in the PATH; golang-etcd-server-dev. GOPATH is /usr/share/gocode unless set.
The watch of the candidate is held back until the server has compacted its revision, as by a slow
network. CONTROL=1: Campaign ends because its context does.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

from frame.etcd_go_program import show_go

PROGRAM = """
package main

import (
	"context"
	"fmt"
	"time"

	"CLIENT"
	"CLIENT/concurrency"
)

// late is a watcher whose requests arrive after a compaction.
type late struct{ clientv3.Watcher }

func (w late) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	for n := 0; n < 2; n++ {
		put, err := client.Put(all, "other", "")
		must(err)
		_, err = client.Compact(all, put.Header.Revision)
		must(err)
	}
	return w.Watcher.Watch(ctx, key, opts...)
}

func main() {
	first := concurrency.NewElection(session(client, 60), "job")
	must(first.Campaign(all, "first"))
	other := connect()
	soon, cancel := all, func() {}
	if control {
		soon, cancel = context.WithTimeout(all, 2*time.Second)
	} else {
		other.Watcher = late{other.Watcher}
	}
	own := session(other, 60)
	key := fmt.Sprintf("job/%x", own.Lease())
	second := concurrency.NewElection(own, "job")
	err := second.Campaign(soon, "second")
	cancel()
	if err == nil {
		panic("the second candidate was elected while the first leads")
	}
	must(second.Resign(all))
	must(first.Resign(all))
	if exists(key) && !elected("third") {
		fmt.Printf("Campaign returned %q, and Resign nil: the key exists, and no candidate can be " +
			"elected as long as the session lasts", err)
	}
}
"""


if __name__ == "__main__":
    show_go(PROGRAM)
