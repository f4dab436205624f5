'use strict';

// A client of fencepost's on Node.js: ops in, events out, as docs/protocol.md has it.
// The lock is npm's redlock on ioredis' clients, as its documentation has it.

const fs = require('fs');
const readline = require('readline');
const Redis = require('ioredis');
const Redlock = require('redlock');

// A write held back in the network must be able to arrive late.
const RESOURCE_TIMEOUT_MS = 120000;
const CONNECT_MS = 5000;

/** Certainly not (`info` false), or perhaps. */
class Failure extends Error {
  constructor(info, kind, text) {
    super(text);
    this.info = info;
    this.kind = kind;
  }
}

/** Where the resource of a test with one lock lies, and where any other does. */
function key(resource) {
  return resource === 'account' ? 'resource:register' : `resource:${resource}`;
}

class Worker {
  constructor(setup) {
    this.setup = setup;
    this.process = setup.process;
    this.count = 0;
    this.armed = new Set();
    this.open();
  }

  open() {
    const { addresses, servers, storage, options } = this.setup;
    const timeout = options.node_timeout_ms;
    const connect = (node, settings) => {
      const [host, port] = addresses[node];
      const client = new Redis({ host, port, connectTimeout: timeout, ...settings });
      client.on('error', () => {}); // it connects again by itself
      return client;
    };
    this.clients = servers.map((node) => connect(node, { commandTimeout: timeout }));
    this.redlock = new Redlock(this.clients, {
      retryCount: options.retries,
      retryDelay: options.retry_delay_ms,
    });
    this.errors = 0;
    this.redlock.on('clientError', () => { this.errors += 1; });
    // One try a request: what was sent twice would be written twice.
    this.storage = connect(storage, {
      connectTimeout: CONNECT_MS,
      enableOfflineQueue: false,
      commandTimeout: RESOURCE_TIMEOUT_MS,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
    });
    this.holds = new Map();
  }

  /** Close all connections, as an op of the current process. */
  close() {
    this.event('invoke', 'close', {});
    let failure = null;
    for (const client of [...this.clients, this.storage]) {
      try {
        client.disconnect();
      } catch (error) {
        failure = new Failure(true, 'raised', String(error));
      }
    }
    this.event(failure ? 'info' : 'ok', 'close', {}, failure);
  }

  /** ns since the test's start: hrtime is CLOCK_MONOTONIC on Linux. */
  now() {
    return Number(process.hrtime.bigint() - BigInt(this.setup.origin_ns));
  }

  say(message) {
    fs.writeSync(1, `${JSON.stringify(message)}\n`);
  }

  event(type, f, value, error) {
    const event = {
      time: this.now(), process: this.process, type, f, value, node: this.setup.node,
    };
    if (error) event.error = [error.kind, error.message];
    this.say(event);
  }

  /** Stop here, if a test has said so: not a step further until it says so. */
  reach(point) {
    if (!this.armed.delete(point)) return;
    this.say({ control: 'point', point });
    process.kill(process.pid, 'SIGSTOP');
  }

  /** How far the wall clock, which counts ms here, is ahead of the monotonic one: bounds, in ns. */
  tellClock() {
    const before = process.hrtime.bigint();
    const wall = BigInt(Date.now()) * 1000000n;
    const after = process.hrtime.bigint();
    const [low, high] = [wall - after, wall + 1000000n - before];
    // Written by hand: these are too large for a number of JavaScript's.
    fs.writeSync(1, `{"control":"clock","low_ns":${low},"high_ns":${high}}\n`);
  }

  async order(order) {
    if (order.f) await this.apply(order.f, order.value || {});
    else if (order.control === 'arm') this.armed.add(order.point);
    else if (order.control === 'disarm') this.armed.delete(order.point);
    else if (order.control === 'clock') this.tellClock();
  }

  async apply(f, asked) {
    const value = f === 'write' ? this.complete(asked) : asked;
    this.event('invoke', f, value);
    let answer;
    try {
      answer = { ...value, ...await this[f](value) };
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      // A read that got no reply changed nothing.
      const info = error.info && f !== 'read';
      this.event(info ? 'info' : 'fail', f, value, error);
      if (info) this.succeed();
      return;
    }
    this.event('ok', f, answer);
    if (f === 'acquire') this.reach('acquired');
  }

  /** Become one's own successor: nothing is left of the process that is gone. */
  succeed() {
    this.close();
    this.process += this.setup.stride;
    this.open();
  }

  complete(asked) {
    this.count += 1;
    const value = `${this.setup.node}.${this.process}.${this.count}`;
    return { ...asked, value, token: null };
  }

  held(value) {
    const lock = this.holds.get(value.hold);
    if (!lock) throw new Failure(false, 'not-held', `this process has no hold ${value.hold}`);
    return lock;
  }

  /** The library's own idea of how long the lock is valid, on the wall clock in ms. */
  deadline(lock) {
    const now = this.now();
    return now + Math.round((lock.expiration - Date.now()) * 1e6);
  }

  async acquire(value) {
    let lock;
    try {
      lock = await this.redlock.lock(value.lock, Math.round(value.ttl / 1e6));
    } catch (error) {
      throw new Failure(false, 'not-granted', error.message);
    }
    this.count += 1;
    const hold = `${this.process}-${this.count}`;
    this.holds.set(hold, lock);
    return { token: null, deadline: this.deadline(lock), hold };
  }

  async extend(value) {
    const lock = this.held(value);
    try {
      await lock.extend(Math.round(value.ttl / 1e6));
    } catch (error) {
      throw new Failure(false, 'no-quorum', error.message);
    }
    return { deadline: this.deadline(lock) };
  }

  async release(value) {
    const lock = this.held(value);
    this.holds.delete(value.hold);
    const before = this.errors;
    try {
      await lock.unlock();
    } catch (error) {
      // A server that said nothing may have released it.
      const unsure = this.errors > before;
      throw new Failure(unsure, unsure ? 'no-quorum' : 'not-held', error.message);
    }
    return {};
  }

  async read({ resource }) {
    const [value, version] = await this.ask('hmget', key(resource), 'value', 'version');
    return { value, version: Number(version || 0) };
  }

  async write(value) {
    const { guard, write_script: script } = this.setup;
    if (guard === 'deadline') {
      const lock = this.holds.get(value.hold);
      if (!lock || lock.expiration <= Date.now()) {
        throw new Failure(false, 'refused', "the client's lease is over, by its own clock");
      }
    }
    this.reach('before-write');
    const [accepted, number] = await this.ask(
      'eval', script, 1, key(value.resource), guard, value.value, value.version, '', '',
    );
    if (!accepted) throw new Failure(false, 'refused', `guard ${guard} compared with ${number}`);
    return { stored: number };
  }

  async ask(command, ...parts) {
    await this.connected();
    try {
      return await this.storage[command](...parts);
    } catch (error) {
      const refused = error.name === 'ReplyError';
      throw new Failure(!refused, refused ? 'refused' : 'timeout', error.message);
    }
  }

  /** Only then is a request sent: what waited in a queue could be sent after it was given up. */
  async connected() {
    if (this.storage.status === 'ready') return;
    await new Promise((resolve) => {
      setTimeout(resolve, CONNECT_MS).unref();
      this.storage.once('ready', resolve);
    });
    if (this.storage.status === 'ready') return;
    throw new Failure(false, 'unreachable', `no connection within ${CONNECT_MS} ms`);
  }
}

async function main() {
  let worker = null;
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const order = JSON.parse(line);
    if (worker) {
      await worker.order(order);
    } else {
      worker = new Worker(order);
      worker.say({ control: 'ready', pid: process.pid, generates: false });
    }
  }
  if (worker) worker.close();
  process.exit(0);
}

main();
