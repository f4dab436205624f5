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

const fs = require('fs');
const net = require('net');
const readline = require('readline');
const { performance } = require('perf_hooks');

// Version 2 has `reset`.
const VERSIONS = [1, 2];
const CONNECT_MS = 5000;
// A write that is delayed in the network must be able to arrive late.
const REPLY_MS = 120000;
const NS_PER_MS = 1000000n;

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

/** Reads ops and writes events. */
class Worker {
  constructor(setup, open, promises) {
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
    this.say({
      control: 'ready',
      version: Math.max(...VERSIONS.filter((one) => (this.setup.versions || [1]).includes(one)), 1),
      pid: process.pid,
      generates: false,
      extends: !this.lock || Boolean(this.lock.extend), // unknown before it is made
      promises: this.promises,
    });
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

/**
 * Runs a lock as a client of fencepost: `open(client)` makes it, once for each process. `promises`:
 * what it promises in addition to exclusion, by name.
 */
async function run(open, { promises } = {}) {
  // Standard output is reserved for events: output of a lock or its library goes to standard error.
  process.stdout.write = process.stderr.write.bind(process.stderr);
  let worker = null;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    if (worker) {
      await worker.order(order);
    } else {
      worker = new Worker(order, open, promises);
      await worker.start();
    }
  }
  if (worker) await worker.close();
  process.exit(0);
}

module.exports = { Failed, Indeterminate, run };
