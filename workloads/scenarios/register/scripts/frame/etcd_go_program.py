"""A program in Go that uses etcd's package concurrency."""

import os
import re
import subprocess
import tempfile

from frame.etcd_server import etcd_server

GOPATH = os.environ.get("GOPATH", "/usr/share/gocode")
CLIENT = "go.etcd.io/etcd/client/v3"  # since 3.5
if not os.path.isdir(os.path.join(GOPATH, "src", CLIENT)):
    CLIENT = "go.etcd.io/etcd/clientv3"
HELPERS = """
package main

import (
	"context"
	"os"
	"time"

	"CLIENT"
	"CLIENT/concurrency"
)

var all = context.Background()
var client = connect()
var control = os.Getenv("CONTROL") != ""

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

// elected returns whether a candidate with a session of its own is elected within three seconds.
func elected(name string) bool {
	soon, cancel := context.WithTimeout(all, 3*time.Second)
	defer cancel()
	return concurrency.NewElection(session(client, 60), "job").Campaign(soon, name) == nil
}
"""


def show_go(program):
    """Run a program against a server. Its output is the defect."""
    with etcd_server() as server, tempfile.TemporaryDirectory() as folder:
        for name, content in (("main.go", program), ("helpers.go", HELPERS)):
            with open(os.path.join(folder, name), "w") as file:
                file.write(re.sub(r"\bCLIENT\b", CLIENT, content))
        env = {**os.environ, "GOPATH": GOPATH, "GO111MODULE": "off", "GOFLAGS": ""}
        build = ["go", "build", "-o", "show", "main.go", "helpers.go"]
        subprocess.run(build, cwd=folder, env=env, check=True)
        command = [os.path.join(folder, "show"), f"127.0.0.1:{server.port}"]
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if ended.returncode:
        raise RuntimeError("the program did not end as planned")
    assert not ended.stdout, ended.stdout.strip()
