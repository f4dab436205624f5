'use strict';

// npm's redlock 5, or its fork @sesamecare-oss/redlock, on ioredis' clients, used as its
// documentation describes. The argument is the package. The option node_timeout_ms is how long it
// waits for a server (50), and 0 without end, which is ioredis' default.

const Redis = require('ioredis');
const { Failed, Indeterminate, run } = require('../../javascript/fencepost');

const library = require(process.argv[2]);
const Redlock = library.Redlock || library.default;

/** Whether a server did not answer, which may have carried out the request. */
async function unanswered(error) {
  const attempts = await Promise.all(error.attempts || []);
  const errors = attempts.flatMap(({ votesAgainst }) => [...votesAgainst.values()]);
  return errors.some((one) => !(one instanceof library.ResourceLockedError));
}

class Lock {
  constructor({ servers, options }) {
    const timeout = Number(options.node_timeout_ms ?? 50) || undefined;
    this.clients = servers.map(({ host, port }) => {
      const client = new Redis({
        host, port, connectTimeout: timeout, commandTimeout: timeout,
      });
      client.on('error', () => {}); // it reconnects by itself
      return client;
    });
    this.redlock = new Redlock(this.clients);
    this.locks = new Map();
  }

  async acquire(name, ttlMs) {
    try {
      return this.granted(name, await this.redlock.acquire([name], Math.round(ttlMs)));
    } catch (error) {
      throw new Failed(error.message);
    }
  }

  async extend(name, ttlMs) {
    try {
      return this.granted(name, await this.locks.get(name).extend(Math.round(ttlMs)));
    } catch (error) {
      throw new Failed(error.message, 'no-quorum');
    }
  }

  /** The library's own deadline, on the wall clock. */
  granted(name, lock) {
    this.locks.set(name, lock);
    return { deadline: new Date(lock.expiration) };
  }

  async release(name) {
    try {
      await this.locks.get(name).release();
    } catch (error) {
      if (await unanswered(error)) throw new Indeterminate(error.message, 'no-quorum');
      throw new Failed(error.message);
    }
  }

  close() {
    this.clients.forEach((client) => client.disconnect());
  }
}

run((client) => new Lock(client), { promises: ['minority'] });
