// fencepost's SDK for C# 6 and newer, on Mono or .NET, on Linux: a single file, nothing to install. It
// turns a lock into a program, which fencepost runs as a client under test (docs/protocol.md defines
// its protocol):
//
//     using Fencepost;
//
//     sealed class MyLock : ILock {
//         public MyLock(Client client) {}                       // client.Servers; client.Options
//         public Grant Acquire(string name, TimeSpan ttl) {}    // new Grant(); null: certainly not granted
//         public bool Release(string name) {}                   // false: it was not held
//         static void Main() { Program.Run(client => new MyLock(client)); }
//     }
//
// A lock may also be an IExtender, and IDisposable, which closes its connections. `throw new
// Failed("why")` if the request was certainly not carried out. Any other exception means that it may
// have been: then this lock is closed, and a successor is created.

using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net.Sockets;
using System.Runtime.InteropServices;
using System.Text;

namespace Fencepost {

/// <summary>The lock under test. Acquire returns null if it was certainly not granted.</summary>
public interface ILock {
    Grant Acquire(string name, TimeSpan ttl);
    bool Release(string name);
}

/// <summary>A lock whose lease can be extended. It returns what Acquire does.</summary>
public interface IExtender {
    Grant Extend(string name, TimeSpan ttl);
}

/// <summary>The request was certainly not carried out. Kinds: not-granted, not-held, no-quorum,
/// unreachable; by default the first for Acquire, and the second for Extend and Release.</summary>
public sealed class Failed : Exception {
    public readonly string Kind;

    public Failed(string text, string kind = null) : base(text) { Kind = kind; }
}

/// <summary>The request may have been carried out, as any other exception says; this one has a
/// kind.</summary>
public sealed class Indeterminate : Exception {
    public readonly string Kind;

    public Indeterminate(string text, string kind = "timeout") : base(text) { Kind = kind; }
}

/// <summary>A granting answer. Without a deadline, the client may count on the lock for the TTL that
/// was asked for, from the call on.</summary>
public sealed class Grant {
    internal long? Token;
    internal long? Count;
    internal Deadline Given = Deadline.Asked;

    /// <summary>With a fencing token.</summary>
    public Grant WithToken(long token) { Token = token; return this; }

    /// <summary>Until this time of Stopwatch.GetTimestamp(), the monotonic clock.</summary>
    public Grant Until(long timestamp) { Given = Deadline.At(timestamp); return this; }

    /// <summary>Until this time of the wall clock.</summary>
    public Grant Until(DateTime time) { Given = Deadline.At(time); return this; }

    /// <summary>Until an unknown time, for example of a session that is kept alive.</summary>
    public Grant WithoutDeadline() { Given = Deadline.Unknown; return this; }

    /// <summary>With the number of times that the waiter was woken before it was granted the
    /// lock.</summary>
    public Grant Wakeups(long number) { Count = number; return this; }

    internal Deadline From(long begun, TimeSpan ttl) {
        return Given == Deadline.Asked ? Deadline.At(begun + Clock.Timestamps(ttl)) : Given;
    }
}

/// <summary>Until when a client may count on a lock.</summary>
internal sealed class Deadline {
    internal static readonly Deadline Asked = new Deadline(), Unknown = new Deadline();
    private long? timestamp;
    private DateTime? wall;

    internal static Deadline At(long timestamp) { return new Deadline { timestamp = timestamp }; }

    internal static Deadline At(DateTime wall) {
        return new Deadline { wall = wall.ToUniversalTime() };
    }

    /// <summary>Returns the time that is left, in ns by its own clock; null if it is
    /// unknown.</summary>
    internal long? LeftNs() {
        if (timestamp != null) return Clock.Ns(timestamp.Value - Stopwatch.GetTimestamp());
        if (wall != null) return (wall.Value - DateTime.UtcNow).Ticks * Clock.NsPerTick;
        return null;
    }
}

internal static class Clock {
    internal const long NsPerTick = 100;
    private const int Monotonic = 1;

    [StructLayout(LayoutKind.Sequential)]
    private struct Timespec { public IntPtr Seconds, Ns; }

    [DllImport("libc", EntryPoint = "clock_gettime")]
    private static extern int Gettime(int clock, out Timespec now);

    /// <summary>Returns the monotonic clock, in ns: that of all programs of this machine.</summary>
    internal static long NowNs() {
        Timespec now;
        if (Gettime(Monotonic, out now) != 0) Program.Fail("the monotonic clock cannot be read");
        return (long) now.Seconds * 1000000000L + (long) now.Ns;
    }

    internal static long WallNs() {
        return (DateTime.UtcNow - new DateTime(1970, 1, 1, 0, 0, 0, DateTimeKind.Utc)).Ticks * NsPerTick;
    }

    internal static long Ns(long timestamps) {
        return (long) (timestamps * (1e9 / Stopwatch.Frequency));
    }

    internal static long Timestamps(TimeSpan time) {
        return (long) (time.TotalSeconds * Stopwatch.Frequency);
    }
}

/// <summary>A server of the lock.</summary>
public sealed class Server {
    public readonly string Name, Host;
    public readonly int Port;

    internal Server(string name, string host, int port) { Name = name; Host = host; Port = port; }

    public override string ToString() { return Name + " " + Host + ":" + Port; }
}

/// <summary>The client that a lock belongs to; each process has its own. It may be used from any
/// thread. Options has strings, bools and longs.</summary>
public sealed class Client {
    public readonly IList<Server> Servers;
    public readonly IDictionary<string, object> Options;
    public readonly string Node, Seed;
    private readonly Worker worker;

    internal Client(Worker worker, Setup setup, long process) {
        this.worker = worker;
        Servers = setup.Servers;
        Options = setup.Options;
        Node = setup.Node;
        Seed = setup.Seed + "/" + process;
    }

    /// <summary>Returns an integer option, or `otherwise` if it was not given.</summary>
    public long Number(string option, long otherwise) {
        object found;
        return Options.TryGetValue(option, out found) && found is long ? (long) found : otherwise;
    }

    /// <summary>Reports the hold of this lock as lost; null means every hold.</summary>
    public void Lost(string name, string why) {
        worker.Tell(this, name, hold => worker.SayLost(hold, why));
    }

    /// <summary>Reports that the lease of this lock was extended in the background, until this time of
    /// Stopwatch.GetTimestamp().</summary>
    public void Renewed(string name, long timestamp) {
        worker.Tell(this, name, hold => worker.SayRenewed(hold, Deadline.At(timestamp)));
    }

    /// <summary>Marks a place where a test may stop this program, for example
    /// "replies-in-flight".</summary>
    public void Failpoint(string point) { worker.Reach(point); }
}

public static class Program {
    /// <summary>Runs a lock as a client of fencepost, and does not return. `open` makes the lock, once
    /// for each process. `promises` are what it promises in addition to exclusion, by name.</summary>
    public static void Run(Func<Client, ILock> open, params string[] promises) {
        var utf8 = new UTF8Encoding(false);
        var output = Console.OpenStandardOutput();
        var input = new StreamReader(Console.OpenStandardInput(), utf8);
        // Standard output is reserved for events: output of a lock or its library goes to standard
        // error.
        Console.SetOut(Console.Error);
        string line = input.ReadLine();
        if (line == null) Environment.Exit(0);
        var worker = new Worker(new Setup(Json.Read(line)), open, promises, output);
        worker.Start();
        while ((line = input.ReadLine()) != null) worker.Order(Json.Read(line));
        worker.Close();
        Environment.Exit(0);
    }

    internal static void Fail(string text) {
        Console.Error.WriteLine("fencepost: " + text);
        Environment.Exit(1);
    }
}

/// <summary>Fields of a message, in their order.</summary>
internal sealed class Fields : List<KeyValuePair<string, object>> {
    internal object this[string name] {
        get { return this.Where(one => one.Key == name).Select(one => one.Value).FirstOrDefault(); }
        set {
            int place = FindIndex(one => one.Key == name);
            var field = new KeyValuePair<string, object>(name, value);
            if (place < 0) Add(field);
            else base[place] = field;
        }
    }

    internal void Add(string name, object value) { Add(new KeyValuePair<string, object>(name, value)); }

    internal string Text(string name) { return (string) this[name]; }

    internal long Number(string name) { return (long) this[name]; }
}

internal sealed class Setup {
    internal const long Newest = 2;
    internal readonly long Process, Stride, Version, OriginNs;
    internal readonly string Node, Guard, WriteScript, Seed;
    internal readonly List<Server> Servers;
    internal readonly Dictionary<string, object> Options;
    internal readonly Server Storage;

    internal Setup(Fields given) {
        Process = given.Number("process");
        Stride = given.Number("stride");
        var spoken = given["versions"] as List<object> ?? new List<object>();
        Version = spoken.Contains(Newest) ? Newest : 1;
        Node = given.Text("node");
        Options = ((Fields) given["options"]).ToDictionary(one => one.Key, one => one.Value);
        var addresses = (Fields) given["addresses"];
        Func<string, Server> server = name => {
            var address = (List<object>) addresses[name];
            return new Server(name, (string) address[0], (int) (long) address[1]);
        };
        Servers = ((List<object>) given["servers"]).Select(name => server((string) name)).ToList();
        Storage = server(given.Text("storage"));
        Guard = given.Text("guard");
        WriteScript = given.Text("write_script");
        Seed = given.Text("seed");
        OriginNs = given.Number("origin_ns");
    }
}

internal sealed class Hold {
    internal string Id, Name;
    internal long? Token;
    internal Deadline Until;
    internal bool IsLost;
}

/// <summary>Reads ops and writes events.</summary>
internal sealed class Worker {
    private const int Sigstop = 19; // Linux

    [DllImport("libc", EntryPoint = "raise")]
    private static extern int Raise(int signal);

    private readonly Func<Client, ILock> open;
    private readonly string[] promises;
    private readonly Stream output;
    // Reports of a lock come from other threads: all fields below are used under this lock there.
    private readonly object speaking = new object();
    private readonly HashSet<string> armed = new HashSet<string>();
    private readonly Dictionary<string, Hold> holds = new Dictionary<string, Hold>();
    private readonly List<Action<Hold>> late = new List<Action<Hold>>();
    private Setup setup;
    private long process, count;
    private Client client;
    private ILock mine;
    private Store store;
    private string asked; // the lock that is being acquired; reports about it wait for the answer

    internal Worker(Setup setup, Func<Client, ILock> open, string[] promises, Stream output) {
        this.setup = setup;
        this.open = open;
        this.promises = promises;
        this.output = output;
    }

    /// <summary>Reports readiness once the lock is made, so that no acquire pays for it.</summary>
    internal void Start() {
        process = setup.Process;
        count = 0;
        Renew();
        var ready = new Fields {
            { "control", "ready" }, { "version", setup.Version },
            { "pid", (long) System.Diagnostics.Process.GetCurrentProcess().Id }, { "generates", false },
            { "extends", mine == null || mine is IExtender }, // unknown before it is made
        };
        if (promises.Length > 0) ready.Add("promises", promises.Cast<object>().ToList());
        Say(ready);
    }

    /// <summary>Makes the store and the lock of this process. The servers are up when a test begins.
    /// Later they may be cut off just then, and the lock is made again at the next acquire.</summary>
    private void Renew() {
        store = new Store(setup.Storage);
        mine = null;
        try {
            Opened();
        } catch (Exception error) {
            string why = "the lock cannot be made: " + error.Message;
            Console.Error.WriteLine(error);
            if (process < setup.Stride) Broken(why);
        }
    }

    private void Opened() {
        if (mine != null) return;
        var made = new Client(this, setup, process);
        lock (speaking) client = made;
        mine = open(made);
        if (mine == null) throw new InvalidOperationException("it is null");
    }

    internal void Order(Fields order) {
        if (order["f"] != null) {
            Apply(order.Text("f"), order["value"] as Fields ?? new Fields());
            return;
        }
        switch (order.Text("control")) {
            case "arm": lock (speaking) armed.Add(order.Text("point")); break;
            case "disarm": lock (speaking) armed.Remove(order.Text("point")); break;
            case "clock": TellClock(); break;
            case "reset": Reset(order); break;
        }
    }

    /// <summary>Closes the lock, forgets everything about it, and makes the next one: another test
    /// begins.</summary>
    private void Reset(Fields order) {
        Close();
        lock (speaking) {
            setup = new Setup(order);
            armed.Clear();
            late.Clear();
        }
        Start();
    }

    /// <summary>Tells how far the wall clock is ahead of the monotonic one: bounds, in ns.</summary>
    private void TellClock() {
        long before = Clock.NowNs(), wall = Clock.WallNs(), after = Clock.NowNs();
        // The wall clock is read in units of 100 ns.
        Say(new Fields {
            { "control", "clock" }, { "low_ns", wall - after },
            { "high_ns", wall + Clock.NsPerTick - before },
        });
    }

    /// <summary>Does one op, from its invocation to its completion.</summary>
    private void Apply(string f, Fields value) {
        if (f == "write") Complete(value);
        Event("invoke", f, value);
        try {
            switch (f) {
                case "acquire": Acquire(value); return; // its event was written with its hold
                case "extend": Extend(value); break;
                case "release": Release(value); break;
                case "read": Read(value); break;
                case "write": Write(value); break;
                default: throw new Failed("this client has no " + f, "not-held");
            }
        } catch (Exception error) {
            // A read that got no reply changed nothing.
            if (error is Failed || f == "read") {
                Event("fail", f, value, error);
                return;
            }
            Event("info", f, value, error);
            Close();
            lock (speaking) process += setup.Stride;
            Renew();
            return;
        }
        Event("ok", f, value);
    }

    /// <summary>Adds to a write a value, unique in the run, and the token of its hold.</summary>
    private void Complete(Fields value) {
        count += 1;
        Hold hold = Find(value);
        value["value"] = setup.Node + "." + process + "." + count;
        value["token"] = hold == null ? null : (object) hold.Token;
    }

    private Hold Find(Fields value) {
        Hold found;
        lock (speaking) return holds.TryGetValue(value.Text("hold") ?? "", out found) ? found : null;
    }

    private Hold Held(Fields value) {
        Hold hold = Find(value);
        if (hold == null) throw new Failed("this process has no hold " + value.Text("hold"), "not-held");
        return hold;
    }

    private void Acquire(Fields value) {
        try {
            Opened();
        } catch (Exception error) {
            throw new Failed("the lock cannot be made: " + error.Message, "unreachable");
        }
        string name = value.Text("lock");
        var ttl = Ttl(value);
        lock (speaking) asked = name;
        long begun = Stopwatch.GetTimestamp();
        Grant grant;
        try {
            grant = Answered(() => mine.Acquire(name, ttl), "not-granted");
        } catch {
            lock (speaking) {
                asked = null;
                late.Clear();
            }
            throw;
        }
        if (grant.Token == null && setup.Guard.StartsWith("fenced", StringComparison.Ordinal)) {
            Broken("Acquire granted without a token, which guard " + setup.Guard + " needs");
        }
        count += 1;
        var hold = new Hold {
            Id = process + "-" + count, Name = name, Token = grant.Token, Until = grant.From(begun, ttl),
        };
        lock (speaking) {
            value["token"] = grant.Token;
            value["deadline"] = Time(hold.Until);
            value["hold"] = hold.Id;
            if (grant.Given == Deadline.Asked) value["assumed"] = true;
            if (grant.Count != null) value["wakeups"] = grant.Count;
            Event("ok", "acquire", value);
            holds[hold.Id] = hold;
            asked = null;
            foreach (var say in late) say(hold);
            late.Clear();
        }
        Reach("acquired");
    }

    private void Extend(Fields value) {
        Hold hold = Held(value);
        var can = mine as IExtender;
        if (can == null) throw new Failed("this lock has no Extend", "not-granted");
        long begun = Stopwatch.GetTimestamp();
        var ttl = Ttl(value);
        Grant grant = Answered(() => can.Extend(hold.Name, ttl), "not-held");
        lock (speaking) hold.Until = grant.From(begun, ttl);
        value["deadline"] = Time(hold.Until);
        if (grant.Given == Deadline.Asked) value["assumed"] = true;
    }

    private void Release(Fields value) {
        Hold hold = Held(value);
        lock (speaking) holds.Remove(hold.Id);
        Answered(() => mine.Release(hold.Name) ? new Grant() : null, "not-held");
    }

    private void Read(Fields value) {
        var reply = (List<object>) store.Call("HMGET", Key(value), "value", "version");
        value["value"] = reply[0];
        value["version"] = long.Parse((string) reply[1] ?? "0", CultureInfo.InvariantCulture);
    }

    private void Write(Fields value) {
        string guard = setup.Guard, token = value["token"] == null ? "" : Json.Written(value["token"]);
        if (guard == "deadline") LookAtTheClock(Find(value));
        Reach("before-write");
        var reply = (List<object>) store.Call(
            "EVAL", setup.WriteScript, "1", Key(value), guard, value.Text("value"),
            Json.Written(value["version"]), token, "");
        if (0L.Equals(reply[0])) {
            throw new Failed("guard " + guard + " compared with " + reply[1], "refused");
        }
        value["stored"] = long.Parse(reply[1].ToString(), CultureInfo.InvariantCulture);
    }

    /// <summary>Refuses to write if the lease has expired. A pause after this check goes
    /// unnoticed.</summary>
    private void LookAtTheClock(Hold hold) {
        lock (speaking) {
            if (hold == null || hold.IsLost) {
                throw new Failed("the client knows that it has lost the lock", "refused");
            }
            if (hold.Until.LeftNs() <= 0) {
                throw new Failed("the client's lease has expired, by its own clock", "refused");
            }
        }
    }

    /// <summary>Closes the lock's connections and the store's, as an op of the current
    /// process.</summary>
    internal void Close() {
        lock (speaking) {
            Event("invoke", "close", new Fields());
            client = null; // later reports of the lock have no process
            asked = null;
            holds.Clear();
        }
        Exception raised = null;
        try {
            var closer = mine as IDisposable;
            if (closer != null) closer.Dispose();
        } catch (Exception error) {
            raised = error;
        }
        store.Close();
        Event(raised == null ? "ok" : "info", "close", new Fields(), raised);
    }

    /// <summary>Returns what a lock granted. Its no, and a Failed without a kind, have the kind of the
    /// op.</summary>
    private static Grant Answered(Func<Grant> ask, string kind) {
        try {
            Grant grant = ask();
            if (grant == null) throw new Failed("the lock said no");
            return grant;
        } catch (Failed error) when (error.Kind == null) {
            throw new Failed(error.Message, kind);
        }
    }

    private static TimeSpan Ttl(Fields value) {
        return TimeSpan.FromTicks(value.Number("ttl") / Clock.NsPerTick);
    }

    /// <summary>Returns the key of a resource; a test with one lock has a fixed one.</summary>
    private static string Key(Fields value) {
        string resource = value.Text("resource");
        return "resource:" + (resource == "account" ? "register" : resource);
    }

    // Reports of the lock. One about a hold whose acquire is in progress follows its `ok`.

    internal void Tell(Client from, string name, Action<Hold> say) {
        lock (speaking) {
            if (from != client) return;
            foreach (Hold hold in holds.Values.Where(one => name == null || name == one.Name)) say(hold);
            if (asked != null && (name == null || name == asked)) late.Add(say);
        }
    }

    internal void SayLost(Hold hold, string why) {
        if (hold.IsLost) return;
        hold.IsLost = true;
        var value = new Fields { { "lock", hold.Name }, { "hold", hold.Id } };
        Event("info", "lost", value, new Failed(why, "lost"));
    }

    internal void SayRenewed(Hold hold, Deadline until) {
        hold.Until = until;
        Event("info", "renewed", new Fields {
            { "lock", hold.Name }, { "hold", hold.Id }, { "deadline", Time(until) },
        });
    }

    /// <summary>Stops here if a test has ordered it, until the test resumes the program.</summary>
    internal void Reach(string point) {
        lock (speaking) { // no output between this and the stop
            if (!armed.Remove(point)) return;
            Say(new Fields { { "control", "point" }, { "point", point } });
            // To this very thread, which stops the others.
            if (Raise(Sigstop) != 0) Program.Fail("this program cannot stop itself");
        }
    }

    /// <summary>Ends this program: the program itself is faulty, not the lock that it calls.</summary>
    private void Broken(string why) {
        Say(new Fields { { "control", "broken" }, { "why", why } });
        Environment.Exit(1);
    }

    /// <summary>Converts a deadline to a time of the test, in ns; null without one.</summary>
    private object Time(Deadline until) {
        long? left = until.LeftNs();
        return left == null ? null : (object) (Clock.NowNs() - setup.OriginNs + left.Value);
    }

    private void Event(string type, string f, Fields value, Exception error = null) {
        lock (speaking) {
            var message = new Fields {
                { "time", Clock.NowNs() - setup.OriginNs }, { "process", process }, { "type", type },
                { "f", f }, { "value", value }, { "node", setup.Node },
            };
            if (error != null) message.Add("error", new List<object> { KindOf(error), error.Message });
            Say(message);
        }
    }

    private static string KindOf(Exception error) {
        var failed = error as Failed;
        if (failed != null) return failed.Kind ?? "not-held";
        var unknown = error as Indeterminate;
        return unknown != null ? unknown.Kind : "raised";
    }

    private void Say(Fields message) {
        lock (speaking) {
            byte[] line = Encoding.UTF8.GetBytes(Json.Written(message) + "\n");
            output.Write(line, 0, line.Length);
            output.Flush();
        }
    }
}

/// <summary>The resource: a register in Redis, over a minimal implementation of RESP2.</summary>
internal sealed class Store {
    private const int ConnectMs = 5000;
    // A write that is delayed in the network must be able to arrive late.
    private const int ReplyMs = 120000;
    private readonly Server server;
    private TcpClient connection;
    private Stream stream;

    internal Store(Server server) { this.server = server; }

    internal object Call(params string[] command) {
        if (connection == null) Connect();
        var request = new MemoryStream();
        Put(request, "*" + command.Length);
        foreach (string part in command) {
            Put(request, "$" + Encoding.UTF8.GetByteCount(part));
            Put(request, part);
        }
        try {
            stream.Write(request.GetBuffer(), 0, (int) request.Length);
            stream.Flush();
            return Receive();
        } catch (Exception error) when (!(error is Failed)) {
            Close();
            throw new Indeterminate("no reply of the store: " + error.Message);
        }
    }

    private void Connect() {
        var made = new TcpClient { NoDelay = true, ReceiveTimeout = ReplyMs, SendTimeout = ReplyMs };
        try {
            if (!made.ConnectAsync(server.Host, server.Port).Wait(ConnectMs)) {
                throw new TimeoutException("nothing within " + ConnectMs + " ms");
            }
        } catch (Exception error) {
            made.Close();
            var cause = error.InnerException ?? error;
            throw new Failed("no connection to the store: " + cause.Message, "unreachable");
        }
        connection = made;
        stream = new BufferedStream(made.GetStream());
    }

    private static void Put(Stream request, string line) {
        byte[] bytes = Encoding.UTF8.GetBytes(line + "\r\n");
        request.Write(bytes, 0, bytes.Length);
    }

    private object Receive() {
        string line = Line(), rest = line.Length > 0 ? line.Substring(1) : "";
        switch (line.Length > 0 ? line[0] : ' ') {
            case '+': return rest;
            case '-': throw new Failed(rest, "refused");
            case ':': return long.Parse(rest, CultureInfo.InvariantCulture);
            case '$': {
                int length = int.Parse(rest, CultureInfo.InvariantCulture);
                if (length < 0) return null;
                byte[] bytes = Bytes(length + 2);
                return Encoding.UTF8.GetString(bytes, 0, length);
            }
            case '*': {
                var parts = new List<object>();
                int size = int.Parse(rest, CultureInfo.InvariantCulture);
                while (parts.Count < size) parts.Add(Receive());
                return parts;
            }
            default: throw new IOException("not RESP: " + line);
        }
    }

    private string Line() {
        var found = new MemoryStream();
        for (int one = Byte(); one != '\n'; one = Byte()) found.WriteByte((byte) one);
        return Encoding.UTF8.GetString(found.ToArray()).TrimEnd('\r');
    }

    private int Byte() {
        int one = stream.ReadByte();
        if (one < 0) throw new EndOfStreamException("the server closed the connection");
        return one;
    }

    private byte[] Bytes(int count) {
        var bytes = new byte[count];
        for (int place = 0; place < count; place++) bytes[place] = (byte) Byte();
        return bytes;
    }

    internal void Close() {
        if (connection != null) connection.Close();
        connection = null;
    }
}

/// <summary>JSON, as objects: Fields, a List of objects, string, bool, long, double and null.</summary>
internal sealed class Json {
    private readonly string text;
    private int at;

    private Json(string text) { this.text = text; }

    /// <summary>Reads a message of the harness.</summary>
    internal static Fields Read(string line) {
        var reader = new Json(line);
        try {
            return (Fields) reader.Value();
        } catch (Exception error) {
            Program.Fail("not JSON at place " + reader.at + ": " + error.Message + ": " + line);
            throw;
        }
    }

    private char Next() {
        while (char.IsWhiteSpace(text[at])) at += 1;
        return text[at];
    }

    private bool Takes(char wanted) {
        bool found = Next() == wanted;
        if (found) at += 1;
        return found;
    }

    private void Must(char wanted) {
        if (!Takes(wanted)) throw new FormatException("no " + wanted);
    }

    private object Value() {
        switch (Next()) {
            case '{': {
                var fields = new Fields();
                Parts('}', () => {
                    string name = Text();
                    Must(':');
                    fields.Add(name, Value());
                });
                return fields;
            }
            case '[': {
                var parts = new List<object>();
                Parts(']', () => parts.Add(Value()));
                return parts;
            }
            case '"': return Text();
            default: return Word();
        }
    }

    private void Parts(char end, Action part) {
        at += 1;
        if (Takes(end)) return;
        do part(); while (Takes(','));
        Must(end);
    }

    private object Word() {
        int begin = at;
        while (at < text.Length && (char.IsLetterOrDigit(text[at]) || "+-.".IndexOf(text[at]) >= 0)) at += 1;
        string word = text.Substring(begin, at - begin);
        switch (word) {
            case "null": return null;
            case "true": return true;
            case "false": return false;
        }
        long whole;
        if (long.TryParse(word, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out whole)) return whole;
        return double.Parse(word, CultureInfo.InvariantCulture);
    }

    private string Text() {
        Must('"');
        var found = new StringBuilder();
        while (text[at] != '"') {
            char one = text[at++];
            if (one != '\\') {
                found.Append(one);
                continue;
            }
            one = text[at++];
            int place = "nrtbf".IndexOf(one);
            if (one == 'u') {
                found.Append((char) int.Parse(text.Substring(at, 4), NumberStyles.HexNumber));
                at += 4;
            } else {
                found.Append(place < 0 ? one : "\n\r\t\b\f"[place]);
            }
        }
        at += 1;
        return found.ToString();
    }

    internal static string Written(object value) {
        var found = new StringBuilder();
        Write(found, value);
        return found.ToString();
    }

    private static void Write(StringBuilder found, object value) {
        var fields = value as Fields;
        var parts = value as List<object>;
        if (value == null) found.Append("null");
        else if (value is bool) found.Append((bool) value ? "true" : "false");
        else if (value is string) Quote(found, (string) value);
        else if (fields != null) {
            found.Append('{');
            for (int place = 0; place < fields.Count; place++) {
                if (place > 0) found.Append(',');
                var field = ((List<KeyValuePair<string, object>>) fields)[place];
                Quote(found, field.Key);
                found.Append(':');
                Write(found, field.Value);
            }
            found.Append('}');
        } else if (parts != null) {
            found.Append('[');
            for (int place = 0; place < parts.Count; place++) {
                if (place > 0) found.Append(',');
                Write(found, parts[place]);
            }
            found.Append(']');
        } else found.Append(Convert.ToString(value, CultureInfo.InvariantCulture));
    }

    private static void Quote(StringBuilder found, string text) {
        found.Append('"');
        foreach (char one in text) {
            if (one == '"' || one == '\\') found.Append('\\').Append(one);
            // A lone surrogate has no UTF-8.
            else if (one < ' ' || char.IsSurrogate(one)) found.Append("\\u").Append(((int) one).ToString("x4"));
            else found.Append(one);
        }
        found.Append('"');
    }
}

}
