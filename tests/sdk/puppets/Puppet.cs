using System;
using System.Diagnostics;
using System.IO;
using Fencepost;

/// <summary>A lock that does what the lock's name says.</summary>
sealed class Puppet : ILock, IExtender, IDisposable {
    private readonly Client client;

    private Puppet(Client client) {
        this.client = client;
        Console.WriteLine("made for " + string.Join(", ", client.Servers) + " " + client.Number("retries", 0) + " " + client.Seed);
        if (true.Equals(client.Options["mute"])) throw new IOException("no server answers");
    }

    static void Main() {
        Program.Run(client => new Puppet(client), "fifo", "one_wakeup");
    }

    public Grant Acquire(string name, TimeSpan ttl) {
        var grant = new Grant();
        switch (name) {
            case "lost-at-once":
                client.Lost(null, "its session ended");
                client.Lost("another", "not this one's");
                return grant;
            case "no":
            case "nothing":
                return null;
            case "token": return grant.WithToken((1L << 60) + 1);
            case "short": return grant.Until(Stopwatch.GetTimestamp() + (long) (ttl.TotalSeconds / 2 * Stopwatch.Frequency));
            case "over": return grant.Until(DateTime.UtcNow.AddSeconds(-1));
            case "woken": return grant.Wakeups(2);
            case "endless": return grant.WithoutDeadline();
            case "failed": throw new Failed("somebody else has it");
            case "no-quorum": throw new Failed("two of five", "no-quorum");
            case "timeout": throw new Indeterminate("no reply");
            case "raises": throw new IOException("what now");
            default: return grant;
        }
    }

    public Grant Extend(string name, TimeSpan ttl) {
        if (name == "renewed") {
            client.Renewed(name, Stopwatch.GetTimestamp() + 3 * Stopwatch.Frequency);
            client.Lost(name, "its lease ran out");
        }
        return name == "not-extended" ? null : new Grant();
    }

    public bool Release(string name) {
        if (name == "release-raises") throw new IOException("what now");
        return name != "not-released";
    }

    public void Dispose() {
        Console.WriteLine("closed");
        object close;
        if (client.Options.TryGetValue("close", out close) && "raises".Equals(close)) {
            throw new IOException("no such socket");
        }
    }
}
