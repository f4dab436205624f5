'use strict';

// npm's redlock on ioredis' clients, used as its documentation describes, as a client of fencepost.

const Redis = require('ioredis');
const Redlock = require('redlock');
const { Failed, Indeterminate, run } = require('../../javascript/fencepost');

class Lock {
  constructor({ servers, options }) {
    const timeout = options.node_timeout_ms;
    this.clients = servers.map(({ host, port }) => {
      const client = new Redis({
        host, port, connectTimeout: timeout, commandTimeout: timeout,
      });
      client.on('error', () => {}); // it reconnects by itself
      return client;
    });
    this.redlock = new Redlock(this.clients, {
      retryCount: options.retries,
      retryDelay: options.retry_delay_ms,
    });
    this.errors = 0;
    this.redlock.on('clientError', () => { this.errors += 1; });
    this.locks = new Map();
  }

  async acquire(name, ttlMs) {
    try {
      const lock = await this.redlock.lock(name, Math.round(ttlMs));
      this.locks.set(name, lock);
      // The library's own deadline, on the wall clock.
      return { deadline: new Date(lock.expiration) };
    } catch (error) {
      throw new Failed(error.message);
    }
  }

  async extend(name, ttlMs) {
    const lock = this.locks.get(name);
    try {
      await lock.extend(Math.round(ttlMs));
    } catch (error) {
      throw new Failed(error.message, 'no-quorum');
    }
    return { deadline: new Date(lock.expiration) };
  }

  async release(name) {
    const before = this.errors;
    try {
      await this.locks.get(name).unlock();
    } catch (error) {
      // A server that did not answer may have released it.
      if (this.errors > before) throw new Indeterminate(error.message, 'no-quorum');
      throw new Failed(error.message);
    }
  }

  /** Closes every connection, then throws the first error. */
  close() {
    const raised = [];
    for (const client of this.clients) {
      try {
        client.disconnect();
      } catch (error) {
        raised.push(error);
      }
    }
    if (raised.length) throw raised[0];
  }
}

run((client) => new Lock(client));
