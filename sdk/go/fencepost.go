// Package fencepost is fencepost's SDK for Go 1.18 and newer on Linux: a single file, nothing to
// install. It turns a lock into a program, which fencepost runs as a client under test
// (docs/protocol.md defines its protocol):
//
//	type MyLock struct{ ... }
//
//	func (l *MyLock) Acquire(name string, ttl time.Duration) (*fencepost.Grant, error)
//	func (l *MyLock) Release(name string) error
//
//	func main() {
//		fencepost.Run(func(client *fencepost.Client) (fencepost.Lock, error) {
//			return &MyLock{client.Servers}, nil
//		}, "minority") // what it promises in addition to exclusion
//	}
package fencepost

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

const (
	connectIn = 5 * time.Second
	// A write that is delayed in the network must be able to arrive late.
	replyIn        = 2 * time.Minute
	clockMonotonic = 1
)

// Lock is the lock under test. Acquire returns &Grant{}, or nil if it was certainly not granted.
//
// An error that is Failed means that the request was certainly not carried out. Any other error
// means that it may have been: then this lock is closed, and a successor is created. A lock may
// also be an Extender and an io.Closer.
type Lock interface {
	Acquire(name string, ttl time.Duration) (*Grant, error)
	Release(name string) error
}

// Extender is a lock whose lease can be extended. It returns what Acquire does.
type Extender interface {
	Extend(name string, ttl time.Duration) (*Grant, error)
}

// Grant is a granting answer. Token is its fencing token, or nil.
//
// Deadline is until when the client may count on the lock. A time of time.Now() is of the monotonic
// clock; one without a monotonic reading is of the wall clock. The zero Deadline means the TTL that
// was asked for, from the call on. NoDeadline: unknown, for example for a session that is kept alive.
//
// Wakeups is how often the waiter was woken before it was granted the lock, or nil if that is unknown.
type Grant struct {
	Token      *int64
	Deadline   time.Time
	NoDeadline bool
	Wakeups    *int64
}

// Token is a fencing token.
func Token(token int64) *int64 { return &token }

// Wakeups is a number of wakeups.
func Wakeups(number int64) *int64 { return &number }

// Failed means that the request was certainly not carried out. Kind is not-granted, not-held,
// no-quorum or unreachable; by default the first for Acquire, and the second for Extend and Release.
type Failed struct{ Text, Kind string }

func (f Failed) Error() string { return f.Text }

// Indeterminate means that the request may have been carried out, as any other error does; it has a kind.
type Indeterminate struct{ Text, Kind string }

func (u Indeterminate) Error() string { return u.Text }

// Server is a server of the lock.
type Server struct {
	Name, Host string
	Port       int
}

// Address is HOST:PORT.
func (s Server) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// Client is the client that a lock belongs to; each process has its own.
//
// Options has strings, bools and json.Numbers; Number returns one of the latter.
type Client struct {
	Servers []Server
	Options map[string]any
	Node    string
	Seed    string
	worker  *worker
}

// Number returns an integer option, or otherwise if it was not given.
func (c *Client) Number(option string, otherwise int64) int64 {
	if given, there := c.Options[option].(json.Number); there {
		if number, err := given.Int64(); err == nil {
			return number
		}
	}
	return otherwise
}

// Lost reports the hold of this lock as lost; "" means every hold. It may be called from any
// goroutine.
func (c *Client) Lost(name, why string) {
	c.worker.tell(c, name, func(h *hold) {
		if !h.lost {
			h.lost = true
			value := fields{"lock": h.name, "hold": h.id}
			c.worker.event("info", "lost", value, Failed{why, "lost"})
		}
	})
}

// Renewed reports that the lease of this lock was extended in the background.
func (c *Client) Renewed(name string, deadline time.Time) {
	c.worker.tell(c, name, func(h *hold) {
		h.deadline = &deadline
		value := fields{"lock": h.name, "hold": h.id, "deadline": c.worker.time(&deadline)}
		c.worker.event("info", "renewed", value, nil)
	})
}

// Failpoint marks a place where a test may stop this program, for example "replies-in-flight".
func (c *Client) Failpoint(point string) { c.worker.reach(point) }

// Elector elects a leader among candidates (docs/your-elector.md). Run campaigns, calls Started of its
// candidacy once it leads, and returns when it leads no more, after Stopped. Each elector runs once.
//
// An elector may also be a Resigner, and have IsLeader (`--stops checked`).
type Elector interface {
	Run(candidacy *Candidacy) error
}

// Resigner is an elector whose leader can step down: Run returns within a lease. Another goroutine
// than that of Run calls it.
type Resigner interface{ Resign() }

type checker interface{ IsLeader() bool }

// Candidacy is one run of an elector. Identity is unique to it, TTL is the lease. Its methods may be
// called from any goroutine.
type Candidacy struct {
	Name, Identity string
	TTL            time.Duration
	worker         *worker
	client         *Client
	elector        Elector
	changed, ended chan struct{} // closed once it leads or has ended; once Run has returned
	speaking       sync.Mutex
	grant          *Grant
	leads, resigns bool
	why            string // how Run has ended
}

// Started reports that it leads from now on, with a fencing token or nil, until a deadline. The zero
// deadline: until it says otherwise.
func (c *Candidacy) Started(token *int64, deadline time.Time) {
	c.speaking.Lock()
	defer c.speaking.Unlock()
	if c.grant != nil {
		c.worker.broken("Started was called twice in one run")
	}
	if c.why != "" {
		c.worker.broken("Started was called after Run had returned")
	}
	c.leads = true
	c.grant = &Grant{Token: token, Deadline: deadline, NoDeadline: deadline.IsZero()}
	close(c.changed)
}

// Renewed reports a later deadline of a leader.
func (c *Candidacy) Renewed(deadline time.Time) {
	c.speaking.Lock()
	defer c.speaking.Unlock()
	if c.leads {
		c.client.Renewed(c.Name, deadline)
	}
}

// Stopped reports that it leads no more.
func (c *Candidacy) Stopped() {
	c.speaking.Lock()
	defer c.speaking.Unlock()
	if c.grant == nil {
		c.worker.broken("Stopped was called before Started")
	}
	c.stop("stopped was called")
}

func (c *Candidacy) stop(why string) {
	if c.leads {
		c.leads = false
		c.client.Lost(c.Name, why)
	}
}

// run calls Run of the elector; its end ends the reign. An application that waits for the callback
// alone works on after an error.
func (c *Candidacy) run() {
	err := c.elector.Run(c)
	c.speaking.Lock()
	defer c.speaking.Unlock()
	c.why = "Run returned"
	if err != nil {
		c.why += " an error: " + err.Error()
	}
	if err == nil && c.leads && !c.resigns {
		c.worker.broken("Run returned while it leads; it should call Stopped first")
	}
	if err == nil || c.worker.setup.Stops != "callback" {
		c.stop(c.why)
	}
	if c.grant == nil {
		close(c.changed)
	}
	close(c.ended)
}

// within returns whether a channel is closed in time. It looks once more when the time is over, because
// select chooses at random if both are ready: a candidacy that has ended must not look as if it went on.
func within(closed chan struct{}, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-closed:
		return true
	case <-timer.C:
	}
	select {
	case <-closed:
		return true
	default:
		return false
	}
}

// campaignsFor is how long a client campaigns before its process gives up, in leases.
const campaignsFor = 4

// election is the lock that is made of an elector: a reign is a hold.
type election struct {
	client    *Client
	open      func(*Client) (Elector, error)
	next      Elector
	candidacy *Candidacy
}

// Acquire campaigns until the elector leads. Each candidacy has an elector of its own.
func (e *election) Acquire(name string, ttl time.Duration) (*Grant, error) {
	old := e.candidacy
	if old != nil && old.granted() != nil && !within(old.ended, ttl) {
		return nil, Failed{"Run has not returned after Stopped", "not-granted"}
	}
	if old == nil || within(old.ended, 0) {
		if err := e.begin(name, ttl); err != nil {
			return nil, Failed{"the elector cannot be made: " + err.Error(), "unreachable"}
		}
	}
	if !within(e.candidacy.changed, campaignsFor*ttl) {
		return nil, Indeterminate{fmt.Sprintf("it does not lead after %d leases", campaignsFor), "timeout"}
	}
	if grant := e.candidacy.granted(); grant != nil {
		return grant, nil
	}
	return nil, Failed{e.candidacy.why, "not-granted"}
}

func (e *election) begin(name string, ttl time.Duration) error {
	elector, err := e.next, error(nil)
	if e.next = nil; elector == nil {
		if elector, err = e.open(e.client); err != nil {
			return err
		}
	}
	worker := e.client.worker
	e.candidacy = &Candidacy{
		Name: name, Identity: fmt.Sprintf("%s.%d", worker.setup.Node, worker.process), TTL: ttl,
		worker: worker, client: e.client, elector: elector,
		changed: make(chan struct{}), ended: make(chan struct{}),
	}
	go e.candidacy.run()
	return nil
}

func (c *Candidacy) granted() *Grant {
	c.speaking.Lock()
	defer c.speaking.Unlock()
	return c.grant
}

// Release resigns, and returns once Run has returned.
func (e *election) Release(name string) error {
	c := e.candidacy
	if within(c.ended, 0) {
		return Failed{c.why, "not-held"}
	}
	resigner, can := c.elector.(Resigner)
	if !can {
		return Failed{"the elector has no Resign", "not-possible"}
	}
	c.speaking.Lock()
	c.resigns = true
	c.speaking.Unlock()
	resigner.Resign()
	if !within(c.ended, c.TTL) {
		return Indeterminate{"Run did not return within a lease after Resign", "timeout"}
	}
	return nil
}

// denies returns whether the elector says that it leads no more, if its client asks before each beat.
func (e *election) denies() bool {
	asked, can := e.candidacy.elector.(checker)
	return can && e.client.worker.setup.Stops == "checked" && !asked.IsLeader()
}

// RunElector runs an elector as a client of fencepost, and does not return. `open` makes the elector,
// once for each candidacy.
func RunElector(open func(*Client) (Elector, error)) {
	runWorker(&worker{elects: true, open: func(client *Client) (Lock, error) {
		elector, err := open(client)
		return &election{client: client, open: open, next: elector}, err
	}})
}

// Run runs a lock as a client of fencepost, and does not return. `open` makes the lock, once for
// each process. `promises` are what it promises in addition to exclusion, by name.
func Run(open func(*Client) (Lock, error), promises ...string) {
	runWorker(&worker{open: open, promises: promises})
}

func runWorker(w *worker) {
	// Standard output is reserved for events: output of a lock or its library goes to standard error.
	fd, err := syscall.Dup(1)
	if err == nil {
		err = syscall.Dup3(2, 1, 0)
	}
	if err != nil {
		fail("standard output cannot be kept: " + err.Error())
	}
	w.out = os.NewFile(uintptr(fd), "events")
	w.armed, w.holds = map[string]bool{}, map[string]*hold{}
	if given := os.Getenv(inherited); given != "" {
		os.Unsetenv(inherited)
		w.succeed(given)
	} else {
		w.orders = json.NewDecoder(os.Stdin)
		if err := next(w.orders, &w.setup); err == io.EOF {
			os.Exit(0)
		} else if err != nil {
			fail("setup cannot be read: " + err.Error())
		}
		w.start()
	}
	for {
		var order order
		if err := next(w.orders, &order); err == io.EOF {
			break
		} else if err != nil {
			fail("an order cannot be read: " + err.Error())
		}
		w.order(order)
	}
	w.close()
	os.Exit(0)
}

// next reads the next message. Numbers of options and ops keep all their digits.
func next(orders *json.Decoder, message any) error {
	var line json.RawMessage
	if err := orders.Decode(&line); err != nil {
		return err
	}
	if order, is := message.(*order); is {
		order.line = line
	}
	return decode(line, message)
}

func decode(line []byte, message any) error {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	return decoder.Decode(message)
}

func fail(text string) {
	fmt.Fprintln(os.Stderr, "fencepost:", text)
	os.Exit(1)
}

type fields map[string]any

type setup struct {
	Process     int64            `json:"process"`
	Stride      int64            `json:"stride"`
	Node        string           `json:"node"`
	Options     map[string]any   `json:"options"`
	Servers     []string         `json:"servers"`
	Addresses   map[string][]any `json:"addresses"`
	Storage     string           `json:"storage"`
	Guard       string           `json:"guard"`
	WriteScript string           `json:"write_script"`
	Seed        string           `json:"seed"`
	Versions    []int            `json:"versions"`
	OriginNs    int64            `json:"origin_ns"`
	Stops       string           `json:"stops"`
}

func (s setup) server(name string) Server {
	address := s.Addresses[name]
	port, _ := address[1].(json.Number).Int64()
	return Server{name, address[0].(string), int(port)}
}

// version returns the newest version of the protocol that both sides speak: 2 has reset.
func (s setup) version() int {
	for _, one := range s.Versions {
		if one == 2 {
			return 2
		}
	}
	return 1
}

type order struct {
	line    json.RawMessage
	Control string `json:"control"`
	Point   string `json:"point"`
	F       string `json:"f"`
	Value   fields `json:"value"`
}

type hold struct {
	id, name string
	token    *int64
	deadline *time.Time // nil: unknown
	lost     bool
}

// worker reads ops and writes events.
type worker struct {
	setup    setup
	open     func(*Client) (Lock, error)
	promises []string // nil: not named
	elects   bool     // its lock is an election
	orders   *json.Decoder
	heard    bytes.Reader // orders that the predecessor has read, and not taken
	out      *os.File
	process  int64
	count    int64
	client   *Client
	lock     Lock
	store    *store

	// Reports of a lock come from other goroutines.
	speaking sync.Mutex
	armed    map[string]bool
	holds    map[string]*hold
	asked    string // the lock that is being acquired; reports about it wait for the answer
	late     []func(*hold)
}

// start reports readiness once the lock is made, so that no acquire pays for it.
func (w *worker) start() {
	w.process = w.setup.Process
	w.renew()
	_, extends := w.lock.(Extender)
	ready := fields{
		"control": "ready", "version": w.setup.version(), "pid": os.Getpid(), "generates": false,
		"extends": extends || w.lock == nil, // unknown before it is made
	}
	if w.promises != nil {
		ready["promises"] = w.promises
	}
	if w.elects {
		resigns := true // unknown before it is made
		if made, is := w.lock.(*election); is {
			_, resigns = made.next.(Resigner)
		}
		ready["elector"], ready["resigns"], ready["extends"] = true, resigns, false
		ready["version"] = 1 // a reset would not end its goroutines
	}
	w.answer(ready)
}

// renew makes the store and the lock of this process. The servers are up when a test begins. Later
// they may be cut off just then, and the lock is made again at the next acquire.
func (w *worker) renew() {
	storage := w.setup.server(w.setup.Storage)
	w.store = &store{address: storage.Address()}
	w.lock = nil
	if _, err := w.opened(); err != nil {
		fmt.Fprintln(os.Stderr, "the lock cannot be made:", err)
		if w.process < w.setup.Stride {
			w.broken("the lock cannot be made: " + err.Error())
		}
	}
}

func (w *worker) opened() (Lock, error) {
	if w.lock != nil {
		return w.lock, nil
	}
	seed := fmt.Sprintf("%s/%d", w.setup.Seed, w.process)
	client := &Client{Options: w.setup.Options, Node: w.setup.Node, Seed: seed, worker: w}
	for _, name := range w.setup.Servers {
		client.Servers = append(client.Servers, w.setup.server(name))
	}
	w.speaking.Lock()
	w.client = client
	w.speaking.Unlock()
	lock, err := w.open(client)
	if err == nil {
		w.lock = lock
	}
	return lock, err
}

func (w *worker) order(order order) {
	switch {
	case order.F != "":
		w.apply(order.F, order.Value)
	case order.Control == "arm" || order.Control == "disarm":
		w.speaking.Lock()
		w.armed[order.Point] = order.Control == "arm"
		w.speaking.Unlock()
	case order.Control == "leave":
		w.leave()
	case order.Control == "reset":
		w.reset(order.line)
	case order.Control == "clock":
		before := monotonicNs()
		wall := time.Now().UnixNano()
		after := monotonicNs()
		w.answer(fields{"control": "clock", "low_ns": wall - after, "high_ns": wall - before})
	}
}

// reset closes the lock, forgets everything about it, and makes the next one: another test begins.
func (w *worker) reset(line []byte) {
	w.close()
	var next setup
	if err := decode(line, &next); err != nil {
		fail("a reset cannot be read: " + err.Error())
	}
	w.speaking.Lock()
	w.setup, w.count, w.late = next, 0, nil
	w.armed, w.holds = map[string]bool{}, map[string]*hold{}
	w.speaking.Unlock()
	w.start()
}

// apply does one op, from its invocation to its completion.
func (w *worker) apply(f string, value fields) {
	if h := w.find(value); h != nil && (f == "read" || f == "write") && w.stopped(h) {
		w.answer(fields{"control": "stopped"})
		return
	}
	if f == "write" {
		w.complete(value)
	}
	w.tellEvent("invoke", f, value, nil)
	answer, err := w.do(f, value)
	if err != nil {
		// A read that got no reply changed nothing.
		if f == "read" || isFailed(err) {
			w.tellEvent("fail", f, value, err)
			return
		}
		w.tellEvent("info", f, value, err)
		if w.elects {
			w.leave()
		}
		w.close()
		w.process += w.setup.Stride
		w.renew()
		return
	}
	value = with(value, answer.fields)
	if f == "acquire" {
		w.hold(value, answer.hold)
		w.reach("acquired")
		return
	}
	w.tellEvent("ok", f, value, nil)
}

// answer of an op: what its `ok` adds, and the hold that an acquire has begun.
type answer struct {
	fields fields
	hold   *hold
}

func (w *worker) do(f string, value fields) (answer, error) {
	switch f {
	case "acquire":
		return w.acquire(value)
	case "extend":
		return w.extend(value)
	case "release":
		return answer{}, w.release(value)
	case "read":
		return w.read(value)
	case "write":
		return w.write(value)
	}
	return answer{}, Failed{"this client has no " + f, "not-held"}
}

// complete adds to a write a value, unique in the run, and the token of its hold.
func (w *worker) complete(value fields) {
	w.count++
	value["value"] = fmt.Sprintf("%s.%d.%d", w.setup.Node, w.process, w.count)
	value["token"] = nil
	if h := w.find(value); h != nil && h.token != nil {
		value["token"] = *h.token
	}
}

// find returns the hold that an op names, or nil if this process has no such hold.
func (w *worker) find(value fields) *hold {
	id, _ := value["hold"].(string)
	w.speaking.Lock()
	defer w.speaking.Unlock()
	return w.holds[id]
}

func (w *worker) held(value fields) (*hold, error) {
	h := w.find(value)
	if h == nil {
		return nil, Failed{fmt.Sprintf("this process has no hold %v", value["hold"]), "not-held"}
	}
	return h, nil
}

func (w *worker) acquire(value fields) (answer, error) {
	lock, err := w.opened()
	if err != nil {
		return answer{}, Failed{"the lock cannot be made: " + err.Error(), "unreachable"}
	}
	name, ttl := value["lock"].(string), duration(value["ttl"])
	w.speaking.Lock()
	w.asked, w.late = name, nil
	w.speaking.Unlock()
	begun := time.Now()
	grant, err := lock.Acquire(name, ttl)
	if err = certain(err, grant == nil, "not-granted"); err != nil {
		return answer{}, err
	}
	if grant.Token == nil && strings.HasPrefix(w.setup.Guard, "fenced") {
		w.broken("Acquire granted without a Token, which guard " + w.setup.Guard + " needs")
	}
	w.count++
	h := &hold{
		id:       fmt.Sprintf("%d-%d", w.process, w.count),
		name:     name,
		token:    grant.Token,
		deadline: grant.until(begun, ttl),
	}
	found := fields{"token": h.token, "deadline": w.time(h.deadline), "hold": h.id}
	if grant.assumes() {
		found["assumed"] = true
	}
	if grant.Wakeups != nil {
		found["wakeups"] = *grant.Wakeups
	}
	return answer{found, h}, nil
}

// hold records a hold, and then writes the lock's reports about it.
func (w *worker) hold(value fields, h *hold) {
	w.speaking.Lock()
	defer w.speaking.Unlock()
	w.event("ok", "acquire", value, nil)
	w.holds[h.id] = h
	late := w.late
	w.asked, w.late = "", nil
	for _, say := range late {
		say(h)
	}
}

func (w *worker) extend(value fields) (answer, error) {
	h, err := w.held(value)
	if err != nil {
		return answer{}, err
	}
	lock, can := w.lock.(Extender)
	if !can {
		return answer{}, Failed{"this lock has no Extend", "not-granted"}
	}
	begun, ttl := time.Now(), duration(value["ttl"])
	grant, err := lock.Extend(h.name, ttl)
	if err = certain(err, grant == nil, "not-held"); err != nil {
		return answer{}, err
	}
	w.speaking.Lock()
	h.deadline = grant.until(begun, ttl)
	w.speaking.Unlock()
	found := fields{"deadline": w.time(h.deadline)}
	if grant.assumes() {
		found["assumed"] = true
	}
	return answer{fields: found}, nil
}

func (w *worker) release(value fields) error {
	h, err := w.held(value)
	if err != nil {
		return err
	}
	w.speaking.Lock()
	delete(w.holds, h.id)
	w.speaking.Unlock()
	return certain(w.lock.Release(h.name), false, "not-held")
}

func (w *worker) read(value fields) (answer, error) {
	reply, err := w.store.call("HMGET", key(value), "value", "version")
	if err != nil {
		return answer{}, err
	}
	found := reply.([]any)
	read := fields{"value": found[0], "version": json.Number("0")}
	if version, there := found[1].(string); there {
		read["version"] = json.Number(version)
	}
	return answer{fields: read}, nil
}

func (w *worker) write(value fields) (answer, error) {
	guard := w.setup.Guard
	if guard == "deadline" {
		if err := w.lookAtTheClock(w.find(value)); err != nil {
			return answer{}, err
		}
	}
	token := ""
	if value["token"] != nil {
		token = fmt.Sprint(value["token"])
	}
	w.reach("before-write")
	reply, err := w.store.call(
		"EVAL", w.setup.WriteScript, "1", key(value), guard,
		value["value"].(string), fmt.Sprint(value["version"]), token, "",
	)
	if err != nil {
		return answer{}, err
	}
	said := reply.([]any)
	if said[0] == int64(0) {
		return answer{}, Failed{fmt.Sprintf("guard %s compared with %v", guard, said[1]), "refused"}
	}
	return answer{fields: fields{"stored": json.Number(fmt.Sprint(said[1]))}}, nil
}

// lookAtTheClock refuses to write if the lease has expired. A pause after this check goes unnoticed.
func (w *worker) lookAtTheClock(h *hold) error {
	w.speaking.Lock()
	defer w.speaking.Unlock()
	if h == nil || h.lost {
		return Failed{"the client knows that it has lost the lock", "refused"}
	}
	if h.deadline != nil && !time.Now().Before(*h.deadline) {
		return Failed{"the client's lease has expired, by its own clock", "refused"}
	}
	return nil
}

// close ends the lock's connections and the store's, as an op of the current process.
func (w *worker) close() {
	w.speaking.Lock()
	w.event("invoke", "close", fields{}, nil)
	// Later reports of the lock have no process.
	w.client, w.asked = nil, ""
	w.holds = map[string]*hold{}
	w.speaking.Unlock()
	var err error
	if closer, can := w.lock.(io.Closer); can {
		err = closer.Close()
	}
	w.store.close()
	if err != nil {
		w.tellEvent("info", "close", fields{}, err)
	} else {
		w.tellEvent("ok", "close", fields{}, nil)
	}
}

// tell writes a report of the lock. One about a hold whose acquire is in progress follows its ok.
func (w *worker) tell(client *Client, name string, say func(*hold)) {
	w.speaking.Lock()
	defer w.speaking.Unlock()
	if client != w.client {
		return
	}
	for _, h := range w.holds {
		if name == "" || name == h.name {
			say(h)
		}
	}
	if w.asked != "" && (name == "" || name == w.asked) {
		w.late = append(w.late, say)
	}
}

// reach stops here if a test has ordered it, until the test resumes the program.
func (w *worker) reach(point string) {
	w.speaking.Lock() // no output between this and the stop
	defer w.speaking.Unlock()
	if !w.armed[point] {
		return
	}
	w.armed[point] = false
	w.say(fields{"control": "point", "point": point})
	// To this very thread, which stops the others.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.Tgkill(os.Getpid(), syscall.Gettid(), syscall.SIGSTOP); err != nil {
		fail("this program cannot stop itself: " + err.Error())
	}
}

// broken ends this program: the program itself is faulty, not the lock that it calls.
func (w *worker) broken(why string) {
	w.answer(fields{"control": "broken", "why": why})
	os.Exit(1)
}

// inherited is the environment variable by which a successor gets the state of its predecessor.
const inherited = "FENCEPOST_SUCCESSOR"

type heritage struct {
	Setup       setup
	Predecessor int64
	Heard       []byte
	Armed       map[string]bool
}

// leave replaces this program by itself, as the successor of this process: nothing else ends the
// goroutines of an elector. The pid stays. It does not return.
func (w *worker) leave() {
	heard, err := io.ReadAll(io.MultiReader(w.orders.Buffered(), &w.heard))
	if err != nil {
		fail("orders cannot be kept: " + err.Error())
	}
	program, err := os.Executable()
	if err != nil {
		fail("this program has no path: " + err.Error())
	}
	w.speaking.Lock() // no report of this process from now on
	w.event("invoke", "close", fields{}, nil)
	left := heritage{w.setup, w.process, heard, w.armed}
	left.Setup.Process = w.process + w.setup.Stride
	given, err := json.Marshal(left)
	if err == nil {
		err = syscall.Dup3(int(w.out.Fd()), 1, 0)
	}
	if err == nil {
		err = syscall.Exec(program, os.Args, append(os.Environ(), inherited+"="+string(given)))
	}
	fail("this program cannot execute itself: " + err.Error())
}

// succeed takes over from the predecessor, whose close is complete now.
func (w *worker) succeed(given string) {
	var left heritage
	if err := decode([]byte(given), &left); err != nil {
		fail("the state of the predecessor cannot be read: " + err.Error())
	}
	w.setup, w.process, w.armed = left.Setup, left.Predecessor, left.Armed
	w.heard.Reset(left.Heard)
	w.orders = json.NewDecoder(io.MultiReader(&w.heard, os.Stdin))
	w.tellEvent("ok", "close", fields{}, nil)
	w.process = w.setup.Process
	w.renew()
}

// stopped returns whether the reign of a hold has ended, for an application that stops its work so.
func (w *worker) stopped(h *hold) bool {
	if !w.elects {
		return false
	}
	w.speaking.Lock()
	lost := h.lost
	over := h.deadline != nil && !time.Now().Before(*h.deadline)
	w.speaking.Unlock()
	if lost || w.setup.Stops == "callback" {
		return lost
	}
	return over || w.lock.(*election).denies()
}

func monotonicNs() int64 {
	var now syscall.Timespec
	_, _, err := syscall.Syscall(
		syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	if err != 0 {
		fail("the monotonic clock cannot be read: " + err.Error())
	}
	return now.Nano()
}

// time converts a deadline to a time of the test, in ns; nil without one.
func (w *worker) time(deadline *time.Time) any {
	if deadline == nil {
		return nil
	}
	return monotonicNs() - w.setup.OriginNs + time.Until(*deadline).Nanoseconds()
}

func (w *worker) tellEvent(kind, f string, value fields, err error) {
	w.speaking.Lock()
	defer w.speaking.Unlock()
	w.event(kind, f, value, err)
}

// event writes an event; its caller holds the lock on the output.
func (w *worker) event(kind, f string, value fields, err error) {
	event := fields{
		"time": monotonicNs() - w.setup.OriginNs, "process": w.process,
		"type": kind, "f": f, "value": value, "node": w.setup.Node,
	}
	if err != nil {
		event["error"] = []string{kindOf(err), err.Error()}
	}
	w.say(event)
}

func (w *worker) answer(message fields) {
	w.speaking.Lock()
	defer w.speaking.Unlock()
	w.say(message)
}

func (w *worker) say(message fields) {
	// A map's fields are written in order of their names, and "control" is the first of any answer.
	line, err := json.Marshal(message)
	if err == nil {
		_, err = w.out.Write(append(line, '\n'))
	}
	if err != nil {
		fail("an event cannot be written: " + err.Error())
	}
}

// assumes returns whether the lock named no deadline, so that the client fills in the TTL.
func (g *Grant) assumes() bool { return !g.NoDeadline && g.Deadline.IsZero() }

func (g *Grant) until(begun time.Time, ttl time.Duration) *time.Time {
	switch {
	case g.NoDeadline:
		return nil
	case g.assumes():
		asked := begun.Add(ttl)
		return &asked
	}
	return &g.Deadline
}

// certain returns a lock's error, with the kind of its op if it is Failed without one.
func certain(err error, no bool, kind string) error {
	if err == nil && no {
		return Failed{"the lock said no", kind}
	}
	if err != nil && isFailed(err) && kindOf(err) == "" {
		return Failed{err.Error(), kind}
	}
	return err
}

func isFailed(err error) bool {
	var value Failed
	var pointer *Failed
	return errors.As(err, &value) || errors.As(err, &pointer)
}

func kindOf(err error) string {
	var failed Failed
	var failedAt *Failed
	var unknown Indeterminate
	var unknownAt *Indeterminate
	switch {
	case errors.As(err, &failed):
		return failed.Kind
	case errors.As(err, &failedAt):
		return failedAt.Kind
	case errors.As(err, &unknown):
		return or(unknown.Kind, "timeout")
	case errors.As(err, &unknownAt):
		return or(unknownAt.Kind, "timeout")
	}
	return "raised"
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func duration(ns any) time.Duration {
	count, _ := ns.(json.Number).Int64()
	return time.Duration(count)
}

func with(value, more fields) fields {
	all := fields{}
	for _, one := range []fields{value, more} {
		for name, field := range one {
			all[name] = field
		}
	}
	return all
}

// key returns the key of a resource; a test with one lock has a fixed one.
func key(value fields) string {
	resource := value["resource"].(string)
	if resource == "account" {
		resource = "register"
	}
	return "resource:" + resource
}

// store is the resource: a register in Redis, over a minimal implementation of RESP2.
type store struct {
	address    string
	connection net.Conn
	replies    *bufio.Reader
}

func (s *store) call(command ...string) (any, error) {
	if s.connection == nil {
		connection, err := net.DialTimeout("tcp", s.address, connectIn)
		if err != nil {
			return nil, Failed{"no connection to the store: " + err.Error(), "unreachable"}
		}
		s.connection, s.replies = connection, bufio.NewReader(connection)
	}
	var request strings.Builder
	fmt.Fprintf(&request, "*%d\r\n", len(command))
	for _, part := range command {
		fmt.Fprintf(&request, "$%d\r\n%s\r\n", len(part), part)
	}
	s.connection.SetDeadline(time.Now().Add(replyIn))
	_, err := io.WriteString(s.connection, request.String())
	var reply any
	if err == nil {
		reply, err = s.receive()
	}
	if err != nil && !isFailed(err) {
		s.close()
		return nil, Indeterminate{"no reply of the store: " + err.Error(), "timeout"}
	}
	return reply, err
}

func (s *store) receive() (any, error) {
	line, err := s.replies.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, errors.New("not RESP: an empty line")
	}
	rest := line[1:]
	switch line[0] {
	case '+':
		return rest, nil
	case '-':
		return nil, Failed{rest, "refused"}
	case ':':
		return strconv.ParseInt(rest, 10, 64)
	case '$':
		length, err := strconv.Atoi(rest)
		if err != nil || length < 0 {
			return nil, err
		}
		bytes := make([]byte, length+2)
		_, err = io.ReadFull(s.replies, bytes)
		return string(bytes[:length]), err
	case '*':
		count, err := strconv.Atoi(rest)
		parts := []any{}
		for err == nil && len(parts) < count {
			var part any
			part, err = s.receive()
			parts = append(parts, part)
		}
		return parts, err
	}
	return nil, errors.New("not RESP: " + line)
}

func (s *store) close() {
	if s.connection != nil {
		s.connection.Close()
		s.connection = nil
	}
}
