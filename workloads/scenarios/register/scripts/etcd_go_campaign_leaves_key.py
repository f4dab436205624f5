"""etcd, Go package concurrency: a Campaign that returns an error leaves its key in the queue.

Run with etcd's Go client and server 3.4.23 and 3.5.30, Go 1.19 and 1.27 (Debian's), Python 3.11.
Needs: etcd and go in the PATH; golang-etcd-server-dev. GOPATH is /usr/share/gocode unless set.
The watch of the candidate is held back until the server has compacted its revision, as by a slow
network. CONTROL=1: Campaign ends because its context does.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import json
import os
import re
import socket
import subprocess
import tempfile
import time
import urllib.request

GOPATH = os.environ.get("GOPATH", "/usr/share/gocode")
CLIENT = "go.etcd.io/etcd/client/v3"  # since 3.5
if not os.path.isdir(os.path.join(GOPATH, "src", CLIENT)):
    CLIENT = "go.etcd.io/etcd/clientv3"

PROGRAM = """
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"CLIENT"
	"CLIENT/concurrency"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func connect() *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{Endpoints: os.Args[1:2], DialTimeout: time.Minute})
	must(err)
	return client
}

func session(client *clientv3.Client, ttl int) *concurrency.Session {
	found, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	must(err)
	return found
}

func exists(key string) bool {
	found, err := client.Get(all, key)
	must(err)
	return len(found.Kvs) > 0
}

// elected returns whether a candidate with a session of its own is elected within three seconds.
func elected(name string) bool {
	soon, cancel := context.WithTimeout(all, 3*time.Second)
	defer cancel()
	return concurrency.NewElection(session(client, 60), "job").Campaign(soon, name) == nil
}

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

var all = context.Background()
var client = connect()
var control = os.Getenv("CONTROL") != ""

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


def show(folder, port):
    place = os.path.join(folder, "main.go")
    with open(place, "w") as file:
        file.write(re.sub(r"\bCLIENT\b", CLIENT, PROGRAM))
    env = {**os.environ, "GOPATH": GOPATH, "GO111MODULE": "off", "GOFLAGS": ""}
    subprocess.run(["go", "build", "-o", "show", "main.go"], cwd=folder, env=env, check=True)
    ended = subprocess.run(
        [os.path.join(folder, "show"), f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True
    )
    if ended.returncode:
        raise RuntimeError("the program did not end as planned")
    assert not ended.stdout, ended.stdout.strip()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def is_ready(port):
    url = f"http://127.0.0.1:{port}/v3/maintenance/status"
    try:
        with urllib.request.urlopen(url, b"{}", timeout=10) as answer:
            return "leader" in json.load(answer)
    except OSError:
        return False


def start(folder):
    port, peers = free_port(), free_port()
    here, there = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peers}"
    places = {
        "--data-dir": os.path.join(folder, "data"),
        "--listen-client-urls": here,
        "--advertise-client-urls": here,
        "--listen-peer-urls": there,
        "--initial-advertise-peer-urls": there,
        "--initial-cluster": f"default={there}",
    }
    words = [word for pair in places.items() for word in pair]
    server = subprocess.Popen(
        ["etcd", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(1200):
        if is_ready(port):
            return server, port
        if server.poll() is not None:
            break
        time.sleep(0.1)
    server.kill()
    raise RuntimeError("etcd did not start")


def main():
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(folder)
        try:
            show(folder, port)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
