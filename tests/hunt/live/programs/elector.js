'use strict';

// An elector on one Redis server, with a connection for each request. The first argument names its
// defect.

const net = require('net');
const { run } = require('./fencepost');

const DEFECT = process.argv[2];
const IF_MINE = (call) => `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call(${call}) end return 0`;
const KEEP = IF_MINE("'pexpire', KEYS[1], ARGV[2]");
const DELETE = IF_MINE("'del', KEYS[1]");
const PARTS = 8; // of a lease: a request, and the time until the next one, take one each

// It tells no deadline, so it has to call stopped in time.
const SILENT = ['works-on', 'hangs'].includes(DEFECT);

class Elector {
  constructor({ servers: [server] }) {
    this.server = server;
    this.resigned = false;
  }

  async run({ name, identity, ttlMs, started, renewed, stopped }) {
    let until = 0;
    let leads = false;
    const over = () => leads && DEFECT !== 'works-on' && performance.now() >= until;
    while (!this.resigned && !over()) {
      // Redis frees an expired key at once.
      const end = performance.now() + (ttlMs * (PARTS - 1)) / PARTS;
      const words = leads ? ['EVAL', KEEP, 1, name, identity, ttlMs] : ['SET', name, identity, 'NX', 'PX', ttlMs];
      const answer = await this.ask(ttlMs, ...words);
      if (answer === (leads ? ':1' : '+OK')) until = end;
      if (answer === ':1' && !SILENT) renewed(until);
      if (answer === '+OK' && performance.now() < until) {
        leads = true;
        started(SILENT ? {} : { deadline: until });
      }
      await new Promise((resolve) => { setTimeout(resolve, ttlMs / PARTS); });
    }
    if (!leads) return;
    stopped();
    await this.ask(ttlMs, ...(DEFECT === 'no-owner-check' ? ['DEL', name] : ['EVAL', DELETE, 1, name, identity]));
  }

  resign() {
    this.resigned = true;
  }

  /** Returns the first line of a reply, or '' without one. */
  ask(ttlMs, ...words) {
    return new Promise((resolve) => {
      const socket = net.connect({ host: this.server.host, port: this.server.port, noDelay: true });
      const end = (line) => { socket.destroy(); resolve(line); };
      if (DEFECT !== 'hangs') socket.setTimeout(ttlMs / PARTS, () => end(''));
      socket.on('error', () => end(''));
      socket.on('close', () => end(''));
      socket.once('data', (data) => end(data.toString().split('\r\n')[0]));
      const parts = words.map((one) => `$${String(one).length}\r\n${one}\r\n`);
      socket.write(`*${words.length}\r\n${parts.join('')}`);
    });
  }
}

run((client) => new Elector(client));
