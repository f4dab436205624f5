"""etcd, Go package concurrency: Mutex.Lock succeeds although its session has expired.

Run with etcd's Go client and server 3.4.23, Go 1.19 (Debian's), Python 3.11. 3.5.30
returns an error.
Needs: etcd and go in the PATH; golang-etcd-server-dev. GOPATH is /usr/share/gocode unless set.
CONTROL=1 keeps the session of the waiting client alive.
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

func waitUntil(condition func() bool) {
	for end := time.Now().Add(time.Minute); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			panic("waited for a minute in vain")
		}
	}
}

// locked returns whether a client with a session of its own is granted the lock within three seconds.
func locked() bool {
	soon, cancel := context.WithTimeout(all, 3*time.Second)
	defer cancel()
	return concurrency.NewMutex(session(client, 60), "job").Lock(soon) == nil
}

var all = context.Background()
var client = connect()
var control = os.Getenv("CONTROL") != ""

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
