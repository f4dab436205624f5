'use strict';

// fencepost's SDK for Node.js 14 and newer: a single file, nothing to install. It turns a lock into
// a program, which fencepost runs as a client under test (docs/protocol.md defines its protocol):
//
//     const { Failed, run } = require('./fencepost');
//
//     class MyLock {
//       constructor(client) {}       // client.servers: [{ name, host, port }]; client.options
//       async acquire(name, ttlMs) {} // true, or { token, deadline }; false: certainly not granted
//       async release(name) {}       // false: it was not held
//     }
//     run((client) => new MyLock(client));
//
// A lock may also have `async extend(name, ttlMs)`, answered like acquire, and `async close()`, which
// closes its connections. `throw new Failed('why')` if the request was certainly not carried out.
// Any other error means that it may have been: then this client is closed, and a successor is
// created.
//
// `token` is a number or a BigInt. `deadline` is until when the client may count on the lock: ms of
// performance.now(), or a Date if the lock uses the wall clock. If it is left out, as after a plain
// true, it is the TTL that was asked for, from the call on. null: unknown, for example for a session
// that is kept alive.
//
// `wakeups`, if the lock knows it, is how often the waiter was woken before it was granted the lock.
// `run(open, { promises: ['fifo'] })` names what the lock promises in addition to exclusion.
//
// A lock reports events between requests: client.lost(name, why), or with null for all holds;
// client.renewed(name, deadline).
//
// `run` also takes an elector (docs/your-elector.md), which has `run` and no `acquire`:
//
//     class MyElector {
//       constructor(client) {}
//       async run({ name, identity, ttlMs, started, renewed, stopped }) {}
//       async resign() {}            // optional: run returns within a lease
//       isLeader() {}                // optional, for `--stops checked`
//     }
//
// Its `run` campaigns, calls started({ token, deadline }) once it leads, and returns when it leads
// no more, after stopped(). Without a deadline it leads until it says otherwise; renewed(deadline)
// names a later one.

const fs = require('fs');
const net = require('net');
const { performance } = require('perf_hooks');

// Version 2 has `reset`.
const VERSIONS = [1, 2];
const CONNECT_MS = 5000;
// A write that is delayed in the network must be able to arrive late.
const REPLY_MS = 120000;
const NS_PER_MS = 1000000n;
// The exit code of an elector's process whose successor has to be started, and the variable that
// names the file in which it leaves its state.
const LEAVES = 75;
const SUCCESSION = 'FENCEPOST_SUCCESSION';
// How long a client campaigns before its process gives up, in leases.
const CAMPAIGNS_FOR = 4;

/** The request was certainly not carried out. Kinds: not-granted, not-held, no-quorum, unreachable. */
class Failed extends Error {
  constructor(text, kind) {
    super(text);
    this.kind = kind;
  }
}

/** The request may have been carried out. Other errors mean the same; this one has a kind. */
class Indeterminate extends Error {
  constructor(text, kind = 'timeout') {
    super(text);
    this.kind = kind;
  }
}

/** The lock does not follow the rules of this SDK. */
class Misuse extends Error {}

/** Formats JSON in which a BigInt is a number. */
function encode(value) {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map(encode).join(',')}]`;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{${fields.map(([name, field]) => `${JSON.stringify(name)}:${encode(field)}`).join(',')}}`;
}

/** Returns the time until a deadline, in ms by its own clock. */
function leftMs(deadline) {
  return deadline - (deadline instanceof Date ? Date.now() : performance.now());
}

/** Returns the answer of acquire or extend as { token, deadline }; null if it refused. */
function granted(f, answer, asked) {
  const wrong = (what, meant) => new Misuse(`${f} answered ${what}; it should be ${meant}`);
  if (answer === false || answer === null) return null;
  if (answer !== true && typeof answer !== 'object') {
    throw wrong(String(answer), 'true or { token, deadline } (granted), or false (certainly not)');
  }
  const { token = null, deadline = asked, wakeups } = answer;
  const assumed = answer.deadline === undefined || undefined;
  const whole = typeof token === 'bigint' ? BigInt.asIntN(64, token) === token : Number.isSafeInteger(token);
  if (token !== null && !whole) {
    throw wrong(`with the token ${String(token)}`, 'a whole number, a BigInt from 2^53 on, or null');
  }
  if (deadline !== null && !(deadline instanceof Date) && !Number.isFinite(deadline)) {
    throw wrong(`with the deadline ${String(deadline)}`, 'ms of performance.now(), a Date, or null');
  }
  if (wakeups !== undefined && !(Number.isSafeInteger(wakeups) && wakeups >= 0)) {
    throw wrong(`with the wakeups ${String(wakeups)}`, 'a whole number from 0 on');
  }
  return { token, deadline, assumed, wakeups };
}

/** The client that a lock belongs to; each process has its own. */
class Client {
  constructor(worker) {
    const { setup } = worker;
    this.servers = setup.servers.map((name) => {
      const [host, port] = setup.addresses[name];
      return { name, host, port };
    });
    this.options = setup.options;
    this.node = setup.node;
    this.seed = `${setup.seed}/${worker.process}`;
    this.worker = worker;
  }

  /** Reports the hold of this lock as lost; null: every hold. */
  lost(name, why) {
    this.worker.tell(this, name, (hold) => this.worker.sayLost(hold, why));
  }

  /** Reports that the lease of this lock was extended in the background. */
  renewed(name, deadline) {
    this.worker.tell(this, name, (hold) => this.worker.sayRenewed(hold, deadline));
  }

  /** Marks a place where a test may stop this program, for example 'replies-in-flight'. */
  failpoint(point) {
    this.worker.reach(point);
  }
}

/** One run of an elector. */
class Candidacy {
  constructor(worker, elector, name, ttlMs) {
    Object.assign(this, { worker, client: worker.client, elector, name, ttlMs });
    this.grant = null;
    this.why = null; // how run has ended
    this.leads = false;
    this.resigns = false;
    this.changed = new Promise((resolve) => { this.change = resolve; });
    this.ended = this.run();
  }

  async run() {
    let raised = null;
    try {
      await this.elector.run({
        name: this.name,
        identity: `${this.worker.setup.node}.${this.worker.process}`,
        ttlMs: this.ttlMs,
        started: (grant = {}) => this.started(grant),
        renewed: (deadline) => this.renewed(deadline),
        stopped: () => this.stopped(),
      });
    } catch (error) {
      console.error(error);
      if (error instanceof ReferenceError || error instanceof SyntaxError) {
        this.worker.broken(`run raised ${error}. That is a bug`);
      }
      raised = error;
    }
    this.end(raised);
  }

  /** Ends the reign. An application that waits for the callback alone works on after an error. */
  end(raised) {
    this.why = raised ? `run raised ${raised}` : 'run returned';
    if (!raised && this.leads && !this.resigns) {
      this.worker.broken('run returned while it leads; it should call stopped first');
    }
    if (!raised || this.worker.setup.stops !== 'callback') this.stop(this.why);
    this.change();
  }

  started(grant) {
    if (this.grant) this.worker.broken('started was called twice in one run');
    if (this.why) this.worker.broken('started was called after run had returned');
    try {
      const { token, deadline } = granted('started', { deadline: null, ...grant });
      this.grant = { token, deadline };
    } catch (error) {
      this.worker.broken(error.message);
    }
    this.leads = true;
    this.change();
  }

  renewed(deadline) {
    if (this.leads) this.client.renewed(this.name, deadline);
  }

  stopped() {
    if (!this.grant) this.worker.broken('stopped was called before started');
    this.stop('stopped was called');
  }

  stop(why) {
    if (!this.leads) return;
    this.leads = false;
    this.client.lost(this.name, why);
  }
}

/** Returns whether a promise is fulfilled in time. */
function within(promise, ms) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms, false);
    promise.then(() => { clearTimeout(timer); resolve(true); });
  });
}

/** The lock that is made of an elector: a reign is a hold. */
class Election {
  constructor(worker, elector) {
    this.worker = worker;
    this.next = elector;
    this.candidacy = null;
    this.resigns = typeof elector.resign === 'function';
  }

  /** Campaigns until the elector leads. Each candidacy has an elector of its own. */
  async acquire(name, ttlMs) {
    const old = this.candidacy;
    if (old && old.grant && !await within(old.ended, ttlMs)) {
      throw new Failed('run has not returned after stopped', 'not-granted');
    }
    if (!old || old.why) await this.begin(name, ttlMs);
    if (!await within(this.candidacy.changed, CAMPAIGNS_FOR * ttlMs)) {
      throw new Indeterminate(`it does not lead after ${CAMPAIGNS_FOR} leases`);
    }
    const { grant, why } = this.candidacy;
    if (!grant) throw new Failed(why, 'not-granted');
    return grant;
  }

  async begin(name, ttlMs) {
    let elector = this.next;
    this.next = null;
    try {
      elector = elector || await this.worker.make(this.worker.client);
    } catch (error) {
      throw new Failed(`the elector cannot be made: ${error.message}`, 'unreachable');
    }
    this.candidacy = new Candidacy(this.worker, elector, name, ttlMs);
  }

  /** Resigns, and returns once run has returned. */
  async release() {
    const { candidacy } = this;
    if (candidacy.why) throw new Failed(candidacy.why, 'not-held');
    if (!this.resigns) throw new Failed('the elector has no resign', 'not-possible');
    candidacy.resigns = true;
    await candidacy.elector.resign();
    if (!await within(candidacy.ended, candidacy.ttlMs)) {
      throw new Indeterminate('run did not return within a lease after resign');
    }
  }

  /** Returns whether the elector says that it leads no more. One that cannot tell does not lead. */
  async denies() {
    const { elector } = this.candidacy;
    if (!elector.isLeader) return false;
    try {
      return !await elector.isLeader();
    } catch (error) {
      console.error(error);
      return true;
    }
  }
}

/** The resource: a register in Redis, over a minimal implementation of RESP2. */
class Store {
  constructor(host, port) {
    this.address = { host, port };
    this.socket = null;
  }

  async call(...command) {
    if (!this.socket) await this.connect();
    const parts = command.map((part) => Buffer.from(String(part)));
    const chunks = [Buffer.from(`*${parts.length}\r\n`)];
    for (const part of parts) {
      chunks.push(Buffer.from(`$${part.length}\r\n`), part, Buffer.from('\r\n'));
    }
    this.socket.write(Buffer.concat(chunks));
    const answer = await this.reply();
    if (answer instanceof Error) throw answer;
    return answer;
  }

  connect() {
    return new Promise((resolve, reject) => {
      const socket = net.connect({ ...this.address, noDelay: true });
      const failed = (why) => {
        socket.destroy();
        reject(new Failed(`no connection to the store: ${why}`, 'unreachable'));
      };
      const timer = setTimeout(failed, CONNECT_MS, `nothing within ${CONNECT_MS} ms`);
      socket.once('error', (error) => { clearTimeout(timer); failed(error.message); });
      socket.once('connect', () => {
        clearTimeout(timer);
        socket.removeAllListeners('error');
        this.take(socket);
        resolve();
      });
    });
  }

  take(socket) {
    this.socket = socket;
    this.heard = Buffer.alloc(0);
    const gone = (why) => {
      if (this.socket === socket) this.drop(why);
    };
    socket.on('error', (error) => gone(error.message));
    socket.on('close', () => gone('the server closed the connection'));
    socket.on('data', (chunk) => {
      this.heard = Buffer.concat([this.heard, chunk]);
      const found = parse(this.heard, 0);
      if (found && this.waiting) {
        this.heard = this.heard.subarray(found.end);
        this.settle().resolve(found.value);
      }
    });
  }

  reply() {
    return new Promise((resolve, reject) => {
      const late = () => this.drop(`no reply within ${REPLY_MS} ms`);
      this.waiting = { resolve, reject, timer: setTimeout(late, REPLY_MS) };
    });
  }

  settle() {
    const { waiting } = this;
    clearTimeout(waiting.timer);
    this.waiting = null;
    return waiting;
  }

  /** Drops the connection. Whether a request without a reply has arrived is unknown. */
  drop(why) {
    const { socket } = this;
    this.socket = null;
    if (socket) socket.destroy();
    if (this.waiting) this.settle().reject(new Indeterminate(why));
  }

  close() {
    this.drop('closed');
  }
}

/** Returns a reply that begins at `at`, and its end; null while it is incomplete. */
function parse(bytes, at) {
  const stop = bytes.indexOf('\r\n', at);
  if (stop < 0) return null;
  const rest = bytes.toString('utf8', at + 1, stop);
  let end = stop + 2;
  switch (String.fromCharCode(bytes[at])) {
    case '+': return { value: rest, end };
    case '-': return { value: new Failed(rest, 'refused'), end };
    case ':': return { value: Number(rest), end };
    case '$': {
      const length = Number(rest);
      if (length < 0) return { value: null, end };
      if (bytes.length < end + length + 2) return null;
      return { value: bytes.toString('utf8', end, end + length), end: end + length + 2 };
    }
    case '*': {
      const value = [];
      while (value.length < Number(rest)) {
        const part = parse(bytes, end);
        if (!part) return null;
        value.push(part.value);
        end = part.end;
      }
      return { value, end };
    }
    default: return { value: new Indeterminate(`not RESP: ${rest}`), end };
  }
}

/** Returns the key of a resource; a test with one lock has a fixed one. */
function key(resource) {
  return resource === 'account' ? 'resource:register' : `resource:${resource}`;
}

/** Standard input, line by line. It keeps what is read and not used, for a successor. */
class Orders {
  constructor(heard) {
    this.heard = heard;
    this.ended = false;
    this.wake = () => {};
    process.stdin.on('data', (chunk) => {
      this.heard = Buffer.concat([this.heard, chunk]);
      this.wake();
    });
    process.stdin.on('end', () => {
      this.ended = true;
      this.wake();
    });
  }

  /** Returns the next order; null at the end. */
  async next() {
    for (;;) {
      const end = this.heard.indexOf('\n');
      if (end >= 0) {
        const line = this.heard.toString('utf8', 0, end);
        this.heard = this.heard.subarray(end + 1);
        return JSON.parse(line);
      }
      if (this.ended) return null;
      await new Promise((resolve) => { this.wake = resolve; });
    }
  }
}

/** Reads ops and writes events. */
class Worker {
  constructor(setup, open, promises, orders) {
    this.orders = orders;
    this.setup = setup;
    this.make = open;
    this.promises = promises;
    this.process = setup.process;
    this.count = 0;
    this.armed = new Set();
    this.holds = new Map();
    this.asking = null;
  }

  /** Reports readiness once the lock is made, so that no acquire pays for it. */
  async start() {
    await this.open();
    const ready = {
      control: 'ready',
      version: Math.max(...VERSIONS.filter((one) => (this.setup.versions || [1]).includes(one)), 1),
      pid: process.pid,
      generates: false,
      extends: !this.lock || Boolean(this.lock.extend), // unknown before it is made
      promises: this.promises,
    };
    if (this.elects) {
      // No version 2: a reset would not end its timers and connections.
      const resigns = !this.lock || this.lock.resigns; // unknown before it is made
      Object.assign(ready, { version: 1, extends: false, elector: true, resigns, restarts: true });
    }
    this.say(ready);
  }

  get elects() {
    // Before it is made: only electors have `stops`.
    return this.lock ? this.lock instanceof Election : typeof this.setup.stops === 'string';
  }

  /**
   * Makes the lock of this process, and its store. The servers are up when a test begins. Later they
   * may be cut off just then, and the lock is made again at the next acquire.
   */
  async open() {
    const [host, port] = this.setup.addresses[this.setup.storage];
    this.store = new Store(host, port);
    this.lock = null;
    await this.opened().catch((error) => {
      console.error(error);
      if (this.process < this.setup.stride) this.broken(`the lock cannot be made: ${error.message}`);
    });
  }

  async opened() {
    if (this.lock) return this.lock;
    this.client = new Client(this);
    this.lock = await this.make(this.client);
    if (this.lock && typeof this.lock.run === 'function' && !this.lock.acquire) {
      this.lock = new Election(this, this.lock);
    }
    const missing = ['acquire', 'release'].filter((f) => typeof (this.lock || {})[f] !== 'function');
    if (missing.length) this.broken(`the lock has no ${missing.join(' and no ')}`);
    return this.lock;
  }

  async order(order) {
    if (order.f) await this.apply(order.f, order.value || {});
    else if (order.control === 'arm') this.armed.add(order.point);
    else if (order.control === 'disarm') this.armed.delete(order.point);
    else if (order.control === 'clock') this.tellClock();
    else if (order.control === 'reset') await this.reset(order);
    else if (order.control === 'leave') this.leave();
  }

  /** Closes the lock, forgets everything about it, and makes the next one: another test begins. */
  async reset(setup) {
    await this.close();
    Object.assign(this, {
      setup, process: setup.process, count: 0, armed: new Set(), holds: new Map(), asking: null,
    });
    await this.start();
  }

  /** Returns how far the wall clock (in ms) is ahead of the monotonic one: bounds, in ns. */
  tellClock() {
    const before = process.hrtime.bigint();
    const wall = BigInt(Date.now()) * NS_PER_MS;
    const after = process.hrtime.bigint();
    this.say({ control: 'clock', low_ns: wall - after, high_ns: wall + NS_PER_MS - before });
  }

  /** Does one op, from its invocation to its completion. */
  async apply(f, asked) {
    if ((f === 'read' || f === 'write') && await this.stopped(this.holds.get(asked.hold))) {
      this.say({ control: 'stopped' });
      return;
    }
    const value = f === 'write' ? this.complete(asked) : asked;
    this.event('invoke', f, value);
    let answer;
    try {
      answer = { ...value, ...await this[f](value) };
    } catch (error) {
      if (error instanceof Misuse) this.broken(error.message);
      // A read that got no reply changed nothing.
      const info = f !== 'read' && !(error instanceof Failed);
      this.event(info ? 'info' : 'fail', f, value, error);
      if (info && this.elects) this.leave();
      if (info) await this.succeed();
      return;
    }
    this.event('ok', f, answer);
    if (f === 'acquire') {
      this.hold();
      this.reach('acquired');
    }
  }

  /** Records a hold, and writes the lock's reports about it. */
  hold() {
    const { hold, late } = this.asking;
    this.asking = null;
    this.holds.set(hold.id, hold);
    for (const say of late) say(hold);
  }

  /** Adds to a write a value, unique in the run, and the token of its hold. */
  complete(asked) {
    this.count += 1;
    const hold = this.holds.get(asked.hold);
    const value = `${this.setup.node}.${this.process}.${this.count}`;
    return { ...asked, value, token: hold ? hold.token : null };
  }

  held(value) {
    const hold = this.holds.get(value.hold);
    if (!hold) throw new Failed(`this process has no hold ${value.hold}`, 'not-held');
    return hold;
  }

  async acquire({ lock: name, ttl }) {
    let lock;
    try {
      lock = await this.opened();
    } catch (error) {
      throw new Failed(`the lock cannot be made: ${error.message}`, 'unreachable');
    }
    const asking = { name, late: [] };
    this.asking = asking;
    const grant = await this.ask('acquire', lock, name, ttl, 'not-granted').catch((error) => {
      this.asking = null;
      throw error;
    });
    if (grant.token === null && this.setup.guard.startsWith('fenced')) {
      throw new Misuse(`acquire granted without a token, which guard ${this.setup.guard} needs`);
    }
    this.count += 1;
    const id = `${this.process}-${this.count}`;
    asking.hold = { id, name, lost: false, ...grant };
    const { token, assumed, wakeups } = grant;
    return { token, deadline: this.deadline(grant.deadline), assumed, hold: id, wakeups };
  }

  /** Returns the grant of acquire or extend. */
  async ask(f, lock, name, ttl, kind) {
    const asked = performance.now() + ttl / 1e6;
    try {
      const grant = granted(f, await lock[f](name, ttl / 1e6), asked);
      if (grant) return grant;
      throw new Failed('the lock said no');
    } catch (error) {
      throw certain(error, kind);
    }
  }

  async extend(value) {
    const hold = this.held(value);
    if (!this.lock.extend) throw new Failed('this lock has no extend', 'not-granted');
    const grant = await this.ask('extend', this.lock, hold.name, value.ttl, 'not-held');
    hold.deadline = grant.deadline;
    return { deadline: this.deadline(grant.deadline), assumed: grant.assumed };
  }

  async release(value) {
    const hold = this.held(value);
    this.holds.delete(hold.id);
    try {
      if (await this.lock.release(hold.name) === false) throw new Failed('the lock said no');
    } catch (error) {
      throw certain(error, 'not-held');
    }
    return {};
  }

  async read({ resource }) {
    const [value, version] = await this.store.call('HMGET', key(resource), 'value', 'version');
    return { value, version: Number(version || 0) };
  }

  async write(value) {
    const { guard, write_script: script } = this.setup;
    const hold = this.holds.get(value.hold);
    if (guard === 'deadline') lookAtTheClock(hold);
    this.reach('before-write');
    const token = value.token === null ? '' : value.token;
    const [accepted, number] = await this.store.call(
      'EVAL', script, 1, key(value.resource), guard, value.value, value.version, token, '',
    );
    if (!accepted) throw new Failed(`guard ${guard} compared with ${number}`, 'refused');
    return { stored: Number(number) };
  }

  /** Returns whether the reign of a hold has ended, for an application that stops its work so. */
  async stopped(hold) {
    const { stops } = this.setup;
    if (!this.elects || !hold) return false;
    if (hold.lost || stops === 'callback') return hold.lost;
    if (hold.deadline !== null && leftMs(hold.deadline) <= 0) return true;
    return stops === 'checked' && this.lock.denies();
  }

  /**
   * Ends this program, and with it the timers and connections of its elector, and lets its successor
   * begin.
   */
  leave() {
    const file = process.env[SUCCESSION];
    if (!file) this.broken(`nothing starts the successor of this program: ${SUCCESSION} is not set`);
    this.event('invoke', 'close', {});
    fs.writeFileSync(file, JSON.stringify({
      setup: { ...this.setup, process: this.process + this.setup.stride },
      predecessor: this.process,
      heard: this.orders.heard.toString('base64'),
      armed: [...this.armed],
    }));
    process.removeAllListeners('exit'); // without the hooks of a library
    process.exit(LEAVES);
  }

  /** Takes over from the predecessor, whose close is complete now. */
  async inherit({ predecessor, armed }) {
    this.say({ control: 'successor', pid: process.pid });
    this.process = predecessor;
    this.event('ok', 'close', {});
    this.process = this.setup.process;
    this.armed = new Set(armed);
    await this.open();
  }

  /** Starts the successor: no state of the process that is gone is left. */
  async succeed() {
    await this.close();
    this.holds.clear();
    this.process += this.setup.stride;
    await this.open();
  }

  /** Closes the lock's connections and the store's, as an op of the current process. */
  async close() {
    this.event('invoke', 'close', {});
    this.client = null; // later reports of the lock have no process
    let raised = null;
    try {
      if (this.lock && this.lock.close) await this.lock.close();
    } catch (error) {
      raised = error;
    }
    this.store.close();
    this.event(raised ? 'info' : 'ok', 'close', {}, raised);
  }

  // Writes a report of the lock. One about a hold whose acquire is in progress follows its `ok`.

  tell(client, name, say) {
    if (client !== this.client) return;
    for (const hold of this.holds.values()) if (name === null || name === hold.name) say(hold);
    const { asking } = this;
    if (asking && (name === null || name === asking.name)) asking.late.push(say);
  }

  sayLost(hold, why) {
    if (hold.lost) return;
    hold.lost = true;
    const value = { lock: hold.name, hold: hold.id };
    this.event('info', 'lost', value, new Failed(String(why), 'lost'));
  }

  sayRenewed(hold, deadline) {
    hold.deadline = deadline;
    const value = { lock: hold.name, hold: hold.id, deadline: this.deadline(deadline) };
    this.event('info', 'renewed', value);
  }

  /** Stops here if a test has ordered it, until the test resumes the program. */
  reach(point) {
    if (!this.armed.delete(point)) return;
    this.say({ control: 'point', point });
    process.kill(process.pid, 'SIGSTOP');
  }

  /** Returns ns since the test's start: hrtime is CLOCK_MONOTONIC on Linux. */
  now() {
    return Number(process.hrtime.bigint() - BigInt(this.setup.origin_ns));
  }

  /** Converts a deadline to a time of the test. */
  deadline(deadline) {
    return deadline === null ? null : this.now() + Math.round(leftMs(deadline) * 1e6);
  }

  event(type, f, value, error) {
    const event = {
      time: this.now(), process: this.process, type, f, value, node: this.setup.node,
    };
    if (error) event.error = [String(error.kind || 'raised'), String(error.message || error)];
    this.say(event);
  }

  /** Exits: the program itself is faulty, not the lock that it calls. */
  broken(why) {
    this.say({ control: 'broken', why });
    process.exit(1);
  }

  say(message) {
    fs.writeSync(1, `${encode(message)}\n`);
  }
}

/** Refuses to write if the lease has expired. A pause after this check goes unnoticed. */
function lookAtTheClock(hold) {
  if (!hold || hold.lost) throw new Failed('the client knows that it has lost the lock', 'refused');
  if (hold.deadline !== null && leftMs(hold.deadline) <= 0) {
    throw new Failed("the client's lease has expired, by its own clock", 'refused');
  }
}

/** Gives a lock's own Failed the kind of its op, unless it has one. */
function certain(error, kind) {
  if (error instanceof Failed && !error.kind) error.kind = kind;
  return error;
}

/** Returns the state that a predecessor has left, and empties the file; null without one. */
function inherited() {
  const file = process.env[SUCCESSION];
  const left = file ? fs.readFileSync(file, 'utf8') : '';
  if (!left) return null;
  fs.writeFileSync(file, '');
  return JSON.parse(left);
}

/**
 * Runs a lock or an elector as a client of fencepost: `open(client)` makes it, once for each process
 * or candidacy. `promises`: what a lock promises in addition to exclusion, by name.
 */
async function run(open, { promises } = {}) {
  // Standard output is reserved for events: output of a lock or its library goes to standard error.
  process.stdout.write = process.stderr.write.bind(process.stderr);
  const heritage = inherited();
  const orders = new Orders(Buffer.from(heritage ? heritage.heard : '', 'base64'));
  let worker = null;
  if (heritage) {
    worker = new Worker(heritage.setup, open, promises, orders);
    await worker.inherit(heritage);
  }
  for (let order = await orders.next(); order; order = await orders.next()) {
    if (worker) {
      await worker.order(order);
    } else {
      worker = new Worker(order, open, promises, orders);
      await worker.start();
    }
  }
  if (worker) await worker.close();
  process.exit(0);
}

module.exports = { Failed, Indeterminate, run };
