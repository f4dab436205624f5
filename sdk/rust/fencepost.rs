//! fencepost's SDK for Rust 1.63 and newer on Unix: a single file, no crates. It turns a lock into a
//! program, which fencepost runs as a client under test (docs/protocol.md defines its protocol):
//!
//! ```ignore
//! mod fencepost;
//! use fencepost::{Client, Error, Grant};
//!
//! struct MyLock { /* ... */ }
//!
//! impl fencepost::Lock for MyLock {
//!     fn acquire(&mut self, name: &str, ttl: Duration) -> Result<Option<Grant>, Error> { /* ... */ }
//!     fn release(&mut self, name: &str) -> Result<bool, Error> { /* ... */ }
//! }
//!
//! fn main() {
//!     fencepost::run(|client: &Client| MyLock::new(&client.servers), &["minority"])
//! }
//! ```

#![allow(dead_code)]

use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::io::FromRawFd;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

const CONNECT_IN: Duration = Duration::from_secs(5);
/// A write that is delayed in the network must be able to arrive late.
const REPLY_IN: Duration = Duration::from_secs(120);
/// The newest version of the protocol, which has `reset`.
const NEWEST: i64 = 2;

/// The lock under test.
///
/// `acquire` and `extend` return None, and `release` returns false, if the lock said no. An error
/// that is `Error::failed` means that the request was certainly not carried out. Any other error,
/// for example one of `?`, means that it may have been: then this lock is closed, and a successor is
/// created.
pub trait Lock {
    /// Whether it has `extend`.
    const EXTENDS: bool = false;

    fn acquire(&mut self, name: &str, ttl: Duration) -> Result<Option<Grant>, Error>;
    fn release(&mut self, name: &str) -> Result<bool, Error>;

    fn extend(&mut self, _name: &str, _ttl: Duration) -> Result<Option<Grant>, Error> {
        Err(Error::failed("this lock has no extend").kind("not-granted"))
    }

    /// Closes its connections.
    fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// A granting answer. Without a deadline, the client may count on the lock for the TTL that was
/// asked for, from the call on.
#[derive(Clone, Debug)]
pub struct Grant {
    token: Option<i64>,
    deadline: Until,
    wakeups: Option<u64>,
}

/// Until when a client may count on a lock, by the monotonic or the wall clock.
#[derive(Clone, Copy, Debug)]
enum Until {
    Asked,
    Unknown,
    Monotonic(Instant),
    Wall(SystemTime),
}

impl Grant {
    pub fn new() -> Grant {
        Grant { token: None, deadline: Until::Asked, wakeups: None }
    }

    /// With a fencing token.
    pub fn token(mut self, token: i64) -> Grant {
        self.token = Some(token);
        self
    }

    /// Until this time of the monotonic clock.
    pub fn until(mut self, deadline: Instant) -> Grant {
        self.deadline = Until::Monotonic(deadline);
        self
    }

    /// Until this time of the wall clock.
    pub fn until_wall(mut self, deadline: SystemTime) -> Grant {
        self.deadline = Until::Wall(deadline);
        self
    }

    /// Until an unknown time, for example of a session that is kept alive.
    pub fn without_deadline(mut self) -> Grant {
        self.deadline = Until::Unknown;
        self
    }

    /// With the number of times that the waiter was woken before it was granted the lock.
    pub fn wakeups(mut self, number: u64) -> Grant {
        self.wakeups = Some(number);
        self
    }

    fn assumes(&self) -> bool {
        matches!(self.deadline, Until::Asked)
    }

    fn until_from(&self, begun: Instant, ttl: Duration) -> Until {
        match self.deadline {
            Until::Asked => Until::Monotonic(begun + ttl),
            named => named,
        }
    }
}

impl Default for Grant {
    fn default() -> Grant {
        Grant::new()
    }
}

impl Until {
    /// Returns the time that is left, in ns by its own clock; None if it is unknown.
    fn left_ns(&self) -> Option<i64> {
        let (later, earlier) = match self {
            Until::Monotonic(at) => {
                let now = Instant::now();
                (at.checked_duration_since(now), now.checked_duration_since(*at))
            }
            Until::Wall(at) => {
                let now = SystemTime::now();
                (at.duration_since(now).ok(), now.duration_since(*at).ok())
            }
            Until::Asked | Until::Unknown => return None,
        };
        let ns = |one: Duration| i64::try_from(one.as_nanos()).unwrap_or(i64::MAX);
        later.map(ns).or_else(|| earlier.map(|one| -ns(one)))
    }

    fn is_over(&self) -> bool {
        matches!(self.left_ns(), Some(left) if left <= 0)
    }
}

/// Why an op did not end with an answer. Any error of the standard library becomes one, of the kind
/// `raised`.
#[derive(Clone, Debug)]
pub struct Error {
    certain: bool,
    kind: String,
    text: String,
}

impl Error {
    /// The request was certainly not carried out. Kinds: not-granted, not-held, no-quorum,
    /// unreachable; by default the first for `acquire`, and the second for `extend` and `release`.
    pub fn failed(text: impl Into<String>) -> Error {
        Error { certain: true, kind: String::new(), text: text.into() }
    }

    /// The request may have been carried out; the kind is `timeout`.
    pub fn indeterminate(text: impl Into<String>) -> Error {
        Error { certain: false, kind: "timeout".into(), text: text.into() }
    }

    pub fn kind(mut self, kind: &str) -> Error {
        self.kind = kind.into();
        self
    }

    /// Gives a lock's `failed` the kind of its op, unless it has one.
    fn or_kind(self, kind: &str) -> Error {
        if self.kind.is_empty() {
            self.kind(kind)
        } else {
            self
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

// `Error` is no std::error::Error itself, so that this covers all others.
impl<E: std::error::Error> From<E> for Error {
    fn from(error: E) -> Error {
        Error { certain: false, kind: "raised".into(), text: error.to_string() }
    }
}

/// A server of the lock.
#[derive(Clone, Debug)]
pub struct Server {
    pub name: String,
    pub host: String,
    pub port: u16,
}

/// The client that a lock belongs to; each process has its own. A clone reports to the same client,
/// from any thread.
#[derive(Clone)]
pub struct Client {
    pub servers: Vec<Server>,
    pub node: String,
    pub seed: String,
    options: Json,
    process: i64,
    voice: Arc<Mutex<Voice>>,
}

impl Client {
    /// Returns an integer option, or `otherwise` if it was not given.
    pub fn number(&self, option: &str, otherwise: i64) -> i64 {
        self.options.get(option).and_then(Json::int).unwrap_or(otherwise)
    }

    /// Returns a text option, if it was given.
    pub fn text(&self, option: &str) -> Option<&str> {
        self.options.get(option).and_then(Json::text)
    }

    /// Returns whether an option is true.
    pub fn flag(&self, option: &str) -> bool {
        matches!(self.options.get(option), Some(Json::Bool(true)))
    }

    /// Reports the hold of this lock as lost; None means every hold.
    pub fn lost(&self, name: Option<&str>, why: &str) {
        speak(&self.voice).tell(self.process, name, Report::Lost(why.into()));
    }

    /// Reports that the lease of this lock was extended in the background.
    pub fn renewed(&self, name: &str, deadline: Instant) {
        let report = Report::Renewed(Until::Monotonic(deadline));
        speak(&self.voice).tell(self.process, Some(name), report);
    }

    /// Marks a place where a test may stop this program, for example "replies-in-flight".
    pub fn failpoint(&self, point: &str) {
        speak(&self.voice).reach(point);
    }
}

/// Runs a lock as a client of fencepost, and does not return. `open` makes the lock, once for each
/// process. `promises` are what it promises in addition to exclusion, by name; `&[]`: not named.
pub fn run<L: Lock>(open: impl Fn(&Client) -> Result<L, Error>, promises: &[&str]) -> ! {
    let out = stdout_for_events();
    let mut lines = BufReader::new(io::stdin()).split(b'\n').map(|line| match line {
        Ok(line) => parse(&String::from_utf8_lossy(&line)),
        Err(error) => fail(&format!("an order cannot be read: {error}")),
    });
    let setup = match lines.next() {
        Some(setup) => setup,
        None => std::process::exit(0),
    };
    let mut worker = Worker::new(Setup::read(&setup), open, promises, out);
    worker.start();
    for order in lines {
        worker.order(order);
    }
    worker.close();
    std::process::exit(0)
}

fn fail(text: &str) -> ! {
    eprintln!("fencepost: {text}");
    std::process::exit(1)
}

extern "C" {
    fn dup(fd: i32) -> i32;
    fn dup2(from: i32, to: i32) -> i32;
    fn raise(signal: i32) -> i32;
    fn clock_gettime(clock: i32, now: *mut Timespec) -> i32;
}

#[repr(C)]
struct Timespec {
    seconds: std::os::raw::c_long,
    ns: std::os::raw::c_long,
}

#[cfg(any(target_os = "linux", target_os = "android"))]
const MONOTONIC: i32 = 1;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const MONOTONIC: i32 = 6; // macOS

#[cfg(any(target_os = "linux", target_os = "android"))]
const SIGSTOP: i32 = 19;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SIGSTOP: i32 = 17; // macOS and the BSDs

/// Keeps standard output for events. Output of a lock or its libraries goes to standard error.
fn stdout_for_events() -> File {
    let kept = unsafe { dup(1) };
    if kept < 0 || unsafe { dup2(2, 1) } < 0 {
        fail("standard output cannot be kept");
    }
    unsafe { File::from_raw_fd(kept) }
}

/// Returns the monotonic clock, in ns. `Instant` shows no number.
fn monotonic_ns() -> i64 {
    let mut now = Timespec { seconds: 0, ns: 0 };
    if unsafe { clock_gettime(MONOTONIC, &mut now) } != 0 {
        fail("the monotonic clock cannot be read");
    }
    now.seconds as i64 * 1_000_000_000 + now.ns as i64
}

fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |one| one.as_nanos() as i64)
}

#[derive(Clone)]
struct Setup {
    process: i64,
    stride: i64,
    version: i64,
    node: String,
    options: Json,
    servers: Vec<Server>,
    storage: Server,
    guard: String,
    write_script: String,
    seed: String,
    origin_ns: i64,
}

impl Setup {
    fn read(given: &Json) -> Setup {
        let text = |name: &str| given.must(name).text().unwrap_or_default().to_string();
        let number = |name: &str| given.must(name).int().unwrap_or_default();
        let addresses = given.must("addresses");
        let server = |name: &str| {
            let address = addresses.must(name).list();
            Server {
                name: name.into(),
                host: address[0].text().unwrap_or_default().into(),
                port: address[1].int().unwrap_or_default() as u16,
            }
        };
        let names = given.must("servers").list();
        let spoken = given.get("versions").map_or(&[][..], Json::list);
        let newest = spoken.iter().any(|one| one.int() == Some(NEWEST));
        Setup {
            process: number("process"),
            stride: number("stride"),
            version: if newest { NEWEST } else { 1 },
            node: text("node"),
            options: given.must("options").clone(),
            servers: names.iter().filter_map(Json::text).map(server).collect(),
            storage: server(&text("storage")),
            guard: text("guard"),
            write_script: text("write_script"),
            seed: text("seed"),
            origin_ns: number("origin_ns"),
        }
    }
}

/// What a lock reports about its holds.
#[derive(Clone)]
enum Report {
    Lost(String),
    Renewed(Until),
}

#[derive(Clone)]
struct Hold {
    id: String,
    name: String,
    token: Option<i64>,
    deadline: Until,
    lost: bool,
}

/// Writes events. Reports of a lock come from other threads, so it is behind a mutex.
struct Voice {
    out: File,
    node: String,
    origin_ns: i64,
    process: i64,
    /// The process whose lock may report; None after its close.
    heard: Option<i64>,
    armed: HashSet<String>,
    holds: HashMap<String, Hold>,
    /// The lock that is being acquired; reports about it wait for the answer.
    asked: Option<String>,
    late: Vec<Report>,
}

fn speak(voice: &Arc<Mutex<Voice>>) -> MutexGuard<'_, Voice> {
    voice.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Voice {
    fn say(&mut self, message: &Json) {
        let line = format!("{message}\n");
        if let Err(error) = self.out.write_all(line.as_bytes()) {
            fail(&format!("an event cannot be written: {error}"));
        }
    }

    fn event(&mut self, kind: &str, f: &str, value: &Json, error: Option<&Error>) {
        let mut event = Json::object([
            ("time", Json::from(monotonic_ns() - self.origin_ns)),
            ("process", self.process.into()),
            ("type", kind.into()),
            ("f", f.into()),
            ("value", value.clone()),
            ("node", self.node.as_str().into()),
        ]);
        if let Some(error) = error {
            let both = vec![error.kind.as_str().into(), error.text.as_str().into()];
            event.set("error", Json::List(both));
        }
        self.say(&event);
    }

    /// Converts a deadline to a time of the test, in ns.
    fn time(&self, deadline: &Until) -> Json {
        match deadline.left_ns() {
            Some(left) => (monotonic_ns() - self.origin_ns).saturating_add(left).into(),
            None => Json::Null,
        }
    }

    /// Writes a report of the lock. One about a hold whose acquire is in progress follows its `ok`.
    fn tell(&mut self, process: i64, name: Option<&str>, report: Report) {
        if self.heard != Some(process) {
            return;
        }
        let about = |one: &str| name.map_or(true, |name| name == one);
        let holds: Vec<String> = self.holds.values().map(|one| one.id.clone()).collect();
        for id in holds {
            if about(&self.holds[&id].name) {
                self.report(&id, &report);
            }
        }
        if self.asked.as_deref().map_or(false, about) {
            self.late.push(report);
        }
    }

    fn report(&mut self, id: &str, report: &Report) {
        let hold = match self.holds.get_mut(id) {
            Some(hold) => hold,
            None => return,
        };
        let mut value = Json::object([("lock", hold.name.as_str().into()), ("hold", id.into())]);
        match report {
            Report::Lost(why) => {
                if !std::mem::replace(&mut hold.lost, true) {
                    let why = Error::failed(why.as_str()).kind("lost");
                    self.event("info", "lost", &value, Some(&why));
                }
            }
            Report::Renewed(deadline) => {
                hold.deadline = *deadline;
                value.set("deadline", self.time(deadline));
                self.event("info", "renewed", &value, None);
            }
        }
    }

    /// Stops here if a test has ordered it, until the test resumes the program.
    fn reach(&mut self, point: &str) {
        if self.armed.remove(point) {
            self.say(&Json::object([("control", "point".into()), ("point", point.into())]));
            // To this very thread, which stops the others.
            if unsafe { raise(SIGSTOP) } != 0 {
                fail("this program cannot stop itself");
            }
        }
    }

    /// Ends this program: the program itself is faulty, not the lock that it calls.
    fn broken(&mut self, why: &str) -> ! {
        self.say(&Json::object([("control", "broken".into()), ("why", why.into())]));
        std::process::exit(1)
    }
}

/// Reads ops and writes events.
struct Worker<'a, L, O> {
    setup: Setup,
    open: O,
    promises: &'a [&'a str],
    process: i64,
    count: u64,
    voice: Arc<Mutex<Voice>>,
    lock: Option<L>,
    store: Store,
}

impl<'a, L: Lock, O: Fn(&Client) -> Result<L, Error>> Worker<'a, L, O> {
    fn new(setup: Setup, open: O, promises: &'a [&'a str], out: File) -> Self {
        let voice = Voice {
            out, node: String::new(), origin_ns: 0, process: 0, heard: None,
            armed: HashSet::new(), holds: HashMap::new(), asked: None, late: Vec::new(),
        };
        let store = Store::at(setup.storage.clone());
        let voice = Arc::new(Mutex::new(voice));
        Worker { setup, open, promises, process: 0, count: 0, voice, lock: None, store }
    }

    /// Reports readiness once the lock is made, so that no acquire pays for it.
    fn start(&mut self) {
        self.process = self.setup.process;
        self.count = 0;
        {
            let mut voice = speak(&self.voice);
            voice.node = self.setup.node.clone();
            voice.origin_ns = self.setup.origin_ns;
            voice.process = self.process;
            voice.armed.clear();
            voice.late.clear();
        }
        self.renew();
        let mut ready = Json::object([
            ("control", "ready".into()),
            ("version", self.setup.version.into()),
            ("pid", i64::from(std::process::id()).into()),
            ("generates", Json::Bool(false)),
            ("extends", Json::Bool(L::EXTENDS)),
        ]);
        if !self.promises.is_empty() {
            let names = self.promises.iter().map(|&one| one.into()).collect();
            ready.set("promises", Json::List(names));
        }
        speak(&self.voice).say(&ready);
    }

    /// Makes the store and the lock of this process. The servers are up when a test begins. Later
    /// they may be cut off just then, and the lock is made again at the next acquire.
    fn renew(&mut self) {
        self.store = Store::at(self.setup.storage.clone());
        self.lock = None;
        if let Err(error) = self.opened() {
            let why = format!("the lock cannot be made: {error}");
            eprintln!("{why}");
            if self.process < self.setup.stride {
                speak(&self.voice).broken(&why);
            }
        }
    }

    fn opened(&mut self) -> Result<(), Error> {
        if self.lock.is_some() {
            return Ok(());
        }
        speak(&self.voice).heard = Some(self.process);
        let client = Client {
            servers: self.setup.servers.clone(),
            node: self.setup.node.clone(),
            seed: format!("{}/{}", self.setup.seed, self.process),
            options: self.setup.options.clone(),
            process: self.process,
            voice: self.voice.clone(),
        };
        self.lock = Some((self.open)(&client)?);
        Ok(())
    }

    fn order(&mut self, order: Json) {
        let point = || order.get("point").and_then(Json::text).unwrap_or_default().to_string();
        if let Some(f) = order.get("f").and_then(Json::text) {
            let value = order.get("value").cloned().unwrap_or_else(|| Json::object([]));
            self.apply(f, value);
            return;
        }
        match order.get("control").and_then(Json::text) {
            Some("arm") => drop(speak(&self.voice).armed.insert(point())),
            Some("disarm") => drop(speak(&self.voice).armed.remove(&point())),
            Some("clock") => self.tell_clock(),
            Some("reset") => self.reset(&order),
            _ => {}
        }
    }

    /// Closes the lock, forgets everything about it, and makes the next one: another test begins.
    fn reset(&mut self, order: &Json) {
        self.close();
        self.setup = Setup::read(order);
        self.start();
    }

    /// Tells how far the wall clock is ahead of the monotonic one: bounds, in ns.
    fn tell_clock(&mut self) {
        let before = monotonic_ns();
        let wall = wall_ns();
        let after = monotonic_ns();
        speak(&self.voice).say(&Json::object([
            ("control", "clock".into()),
            ("low_ns", (wall - after).into()),
            ("high_ns", (wall - before).into()),
        ]));
    }

    /// Does one op, from its invocation to its completion.
    fn apply(&mut self, f: &str, mut value: Json) {
        if f == "write" {
            self.complete(&mut value);
        }
        speak(&self.voice).event("invoke", f, &value, None);
        let done = match f {
            "acquire" => self.acquire(&mut value),
            "extend" => self.extend(&mut value),
            "release" => self.release(&value),
            "read" => self.read(&mut value),
            "write" => self.write(&mut value),
            _ => Err(Error::failed(format!("this client has no {f}")).kind("not-held")),
        };
        match done {
            Ok(()) if f == "acquire" => {} // its event was written together with its hold
            Ok(()) => speak(&self.voice).event("ok", f, &value, None),
            // A read that got no reply changed nothing.
            Err(error) if error.certain || f == "read" => {
                speak(&self.voice).event("fail", f, &value, Some(&error));
            }
            Err(error) => {
                speak(&self.voice).event("info", f, &value, Some(&error));
                self.close();
                self.process += self.setup.stride;
                speak(&self.voice).process = self.process;
                self.renew();
            }
        }
    }

    /// Adds to a write a value, unique in the run, and the token of its hold.
    fn complete(&mut self, value: &mut Json) {
        self.count += 1;
        let made = format!("{}.{}.{}", self.setup.node, self.process, self.count);
        let token = self.hold(value).ok().and_then(|hold| hold.token);
        value.set("value", made.into());
        value.set("token", token.map_or(Json::Null, Json::from));
    }

    /// Returns the hold that an op names.
    fn hold(&self, value: &Json) -> Result<Hold, Error> {
        let id = value.get("hold").and_then(Json::text).unwrap_or_default();
        let found = speak(&self.voice).holds.get(id).cloned();
        found.ok_or_else(|| {
            Error::failed(format!("this process has no hold {id}")).kind("not-held")
        })
    }

    fn acquire(&mut self, value: &mut Json) -> Result<(), Error> {
        self.opened().map_err(|error| {
            Error::failed(format!("the lock cannot be made: {error}")).kind("unreachable")
        })?;
        let (name, ttl) = (value.must("lock").text().unwrap_or_default().to_string(), ttl(value));
        speak(&self.voice).asked = Some(name.clone());
        let begun = Instant::now();
        let lock = self.lock.as_mut().expect("it was opened");
        let found = answered(lock.acquire(&name, ttl), "not-granted");
        let mut voice = speak(&self.voice);
        voice.asked = None;
        let late = std::mem::take(&mut voice.late);
        let grant = found?;
        let guard = &self.setup.guard;
        if grant.token.is_none() && guard.starts_with("fenced") {
            voice.broken(&format!("acquire granted without a token, which guard {guard} needs"));
        }
        self.count += 1;
        let id = format!("{}-{}", self.process, self.count);
        let deadline = grant.until_from(begun, ttl);
        value.set("token", grant.token.map_or(Json::Null, Json::from));
        value.set("deadline", voice.time(&deadline));
        value.set("hold", id.as_str().into());
        if grant.assumes() {
            value.set("assumed", Json::Bool(true));
        }
        if let Some(wakeups) = grant.wakeups {
            value.set("wakeups", (wakeups as i64).into());
        }
        voice.event("ok", "acquire", value, None);
        let hold = Hold { id: id.clone(), name, token: grant.token, deadline, lost: false };
        voice.holds.insert(id.clone(), hold);
        for report in late {
            voice.report(&id, &report);
        }
        voice.reach("acquired");
        Ok(())
    }

    fn extend(&mut self, value: &mut Json) -> Result<(), Error> {
        let hold = self.hold(value)?;
        let (begun, ttl) = (Instant::now(), ttl(value));
        let lock = self.lock.as_mut().expect("it has a hold");
        let grant = answered(lock.extend(&hold.name, ttl), "not-held")?;
        let deadline = grant.until_from(begun, ttl);
        let mut voice = speak(&self.voice);
        if let Some(hold) = voice.holds.get_mut(&hold.id) {
            hold.deadline = deadline;
        }
        value.set("deadline", voice.time(&deadline));
        if grant.assumes() {
            value.set("assumed", Json::Bool(true));
        }
        Ok(())
    }

    fn release(&mut self, value: &Json) -> Result<(), Error> {
        let hold = self.hold(value)?;
        speak(&self.voice).holds.remove(&hold.id);
        let lock = self.lock.as_mut().expect("it has a hold");
        let done = lock.release(&hold.name).map(|yes| if yes { Some(()) } else { None });
        answered(done, "not-held")
    }

    fn read(&mut self, value: &mut Json) -> Result<(), Error> {
        let reply = self.store.call(&["HMGET", &key(value), "value", "version"])?;
        let [found, version] = two(&reply)?;
        value.set("value", found.clone());
        value.set("version", Json::Number(version.text().unwrap_or("0").into()));
        Ok(())
    }

    fn write(&mut self, value: &mut Json) -> Result<(), Error> {
        let guard = self.setup.guard.clone();
        if guard == "deadline" {
            look_at_the_clock(self.hold(value).ok())?;
        }
        speak(&self.voice).reach("before-write");
        let token = match value.must("token") {
            Json::Null => String::new(),
            token => token.to_string(),
        };
        let (written, version) = (value.must("value").text(), value.must("version").to_string());
        let reply = self.store.call(&[
            "EVAL", &self.setup.write_script, "1", &key(value), &guard,
            written.unwrap_or_default(), &version, &token, "",
        ])?;
        let [accepted, said] = two(&reply)?;
        let said = said.text().map_or_else(|| said.to_string(), str::to_string);
        if accepted.int() == Some(0) {
            let why = format!("guard {guard} compared with {said}");
            return Err(Error::failed(why).kind("refused"));
        }
        value.set("stored", Json::Number(said));
        Ok(())
    }

    /// Closes the lock's connections and the store's, as an op of the current process.
    fn close(&mut self) {
        {
            let mut voice = speak(&self.voice);
            voice.event("invoke", "close", &Json::object([]), None);
            voice.heard = None; // later reports of the lock have no process
            voice.asked = None;
            voice.holds.clear();
        }
        let closed = self.lock.take().map_or(Ok(()), |mut lock| lock.close());
        self.store.connection = None;
        let mut voice = speak(&self.voice);
        let kind = if closed.is_ok() { "ok" } else { "info" };
        voice.event(kind, "close", &Json::object([]), closed.err().as_ref());
    }
}

/// Returns what a lock granted. Its no, and a `failed` without a kind, have the kind of the op.
fn answered<T>(answer: Result<Option<T>, Error>, kind: &str) -> Result<T, Error> {
    match answer {
        Ok(Some(grant)) => Ok(grant),
        Ok(None) => Err(Error::failed("the lock said no").kind(kind)),
        Err(error) => Err(error.or_kind(kind)),
    }
}

/// Refuses to write if the lease has expired. A pause after this check goes unnoticed.
fn look_at_the_clock(hold: Option<Hold>) -> Result<(), Error> {
    let why = match hold {
        Some(hold) if !hold.lost && !hold.deadline.is_over() => return Ok(()),
        Some(hold) if !hold.lost => "the client's lease has expired, by its own clock",
        _ => "the client knows that it has lost the lock",
    };
    Err(Error::failed(why).kind("refused"))
}

fn ttl(value: &Json) -> Duration {
    Duration::from_nanos(value.must("ttl").int().unwrap_or_default() as u64)
}

/// Returns the key of a resource; a test with one lock has a fixed one.
fn key(value: &Json) -> String {
    match value.must("resource").text() {
        Some("account") => "resource:register".into(),
        resource => format!("resource:{}", resource.unwrap_or_default()),
    }
}

fn two(reply: &Json) -> Result<[&Json; 2], Error> {
    match reply.list() {
        [one, other] => Ok([one, other]),
        _ => Err(Error::indeterminate(format!("not a reply of two parts: {reply}"))),
    }
}

/// The resource: a register in Redis, over a minimal implementation of RESP2.
struct Store {
    server: Server,
    connection: Option<BufReader<TcpStream>>,
}

impl Store {
    fn at(server: Server) -> Store {
        Store { server, connection: None }
    }

    fn call(&mut self, command: &[&str]) -> Result<Json, Error> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().map_err(|error| {
                Error::failed(format!("no connection to the store: {error}")).kind("unreachable")
            })?,
        };
        let mut request = format!("*{}\r\n", command.len());
        for part in command {
            let _ = write!(request, "${}\r\n{part}\r\n", part.len());
        }
        let sent = connection.get_mut().write_all(request.as_bytes());
        let reply = sent.and_then(|()| receive(&mut connection)).map_err(|error| {
            Error::indeterminate(format!("no reply of the store: {error}"))
        })?;
        self.connection = Some(connection);
        reply
    }

    fn connect(&self) -> io::Result<BufReader<TcpStream>> {
        let mut addresses = (self.server.host.as_str(), self.server.port).to_socket_addrs()?;
        let nowhere = || io::Error::new(io::ErrorKind::NotFound, "its host has no address");
        let stream = TcpStream::connect_timeout(&addresses.next().ok_or_else(nowhere)?, CONNECT_IN)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(REPLY_IN))?;
        stream.set_write_timeout(Some(REPLY_IN))?;
        Ok(BufReader::new(stream))
    }
}

/// Reads a reply; an error of the server is one that leaves the connection as it is.
fn receive(from: &mut BufReader<TcpStream>) -> io::Result<Result<Json, Error>> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("not RESP: {what}"));
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let line = line.trim_end();
    if line.is_empty() || !line.is_char_boundary(1) {
        return Err(wrong(line));
    }
    let (kind, rest) = line.split_at(1);
    let number = rest.parse::<i64>();
    Ok(Ok(match (kind, number) {
        ("+", _) => rest.into(),
        ("-", _) => return Ok(Err(Error::failed(rest).kind("refused"))),
        (":", Ok(number)) => number.into(),
        ("$" | "*", Ok(-1)) => Json::Null,
        ("$", Ok(length)) if length >= 0 => {
            let mut bytes = vec![0; length as usize + 2];
            from.read_exact(&mut bytes)?;
            bytes.truncate(length as usize);
            String::from_utf8_lossy(&bytes).into_owned().as_str().into()
        }
        ("*", Ok(count)) if count >= 0 => {
            let mut parts = Vec::new();
            for _ in 0..count {
                match receive(from)? {
                    Ok(part) => parts.push(part),
                    Err(error) => return Ok(Err(error)),
                }
            }
            Json::List(parts)
        }
        _ => return Err(wrong(line)),
    }))
}

/// A JSON value. A number is kept as it is written, so that it keeps all its digits.
#[derive(Clone, Debug, PartialEq)]
enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl From<&str> for Json {
    fn from(text: &str) -> Json {
        Json::Text(text.into())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Json {
        Json::Text(text)
    }
}

impl From<i64> for Json {
    fn from(number: i64) -> Json {
        Json::Number(number.to_string())
    }
}

impl Json {
    fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
        Json::Object(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(fields) => fields.iter().find(|(one, _)| one == name).map(|(_, value)| value),
            _ => None,
        }
    }

    fn must(&self, name: &str) -> &Json {
        self.get(name).unwrap_or_else(|| fail(&format!("a message has no {name}: {self}")))
    }

    fn set(&mut self, name: &str, value: Json) {
        if let Json::Object(fields) = self {
            match fields.iter_mut().find(|(one, _)| one == name) {
                Some((_, old)) => *old = value,
                None => fields.push((name.into(), value)),
            }
        }
    }

    fn text(&self) -> Option<&str> {
        match self {
            Json::Text(text) => Some(text),
            _ => None,
        }
    }

    fn int(&self) -> Option<i64> {
        match self {
            Json::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    fn list(&self) -> &[Json] {
        match self {
            Json::List(parts) => parts,
            _ => &[],
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Json::Null => out.write_str("null"),
            Json::Bool(yes) => write!(out, "{yes}"),
            Json::Number(digits) => out.write_str(digits),
            Json::Text(text) => quoted(out, text),
            Json::List(parts) => {
                out.write_str("[")?;
                for (place, part) in parts.iter().enumerate() {
                    write!(out, "{}{part}", if place > 0 { "," } else { "" })?;
                }
                out.write_str("]")
            }
            Json::Object(fields) => {
                out.write_str("{")?;
                for (place, (name, value)) in fields.iter().enumerate() {
                    out.write_str(if place > 0 { "," } else { "" })?;
                    quoted(out, name)?;
                    write!(out, ":{value}")?;
                }
                out.write_str("}")
            }
        }
    }
}

fn quoted(out: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for one in text.chars() {
        match one {
            '"' | '\\' => write!(out, "\\{one}")?,
            one if one < ' ' => write!(out, "\\u{:04x}", one as u32)?,
            one => out.write_char(one)?,
        }
    }
    out.write_char('"')
}

/// Reads a message of the harness.
fn parse(text: &str) -> Json {
    let mut reader = Reader { text, at: 0 };
    match reader.value() {
        Some(value) if reader.rest().trim().is_empty() => value,
        _ => fail(&format!("not JSON from place {} on: {text}", reader.at)),
    }
}

/// Reads JSON. Each method returns None if the text is something else.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn next(&mut self) -> Option<char> {
        let one = self.rest().chars().next()?;
        self.at += one.len_utf8();
        Some(one)
    }

    /// Takes this text if it comes next, after spaces.
    fn takes(&mut self, wanted: &str) -> bool {
        let rest = self.rest().trim_start();
        let found = rest.starts_with(wanted);
        if found {
            self.at = self.text.len() - rest.len() + wanted.len();
        }
        found
    }

    fn value(&mut self) -> Option<Json> {
        for (word, value) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
            if self.takes(word) {
                return Some(value);
            }
        }
        if self.takes("\"") {
            return self.text().map(Json::Text);
        }
        if self.takes("[") {
            return self.parts("]", Reader::value).map(Json::List);
        }
        if self.takes("{") {
            return self.parts("}", Reader::field).map(Json::Object);
        }
        self.takes(""); // spaces
        let is_part = |one: char| one.is_ascii_digit() || "+-.eE".contains(one);
        let digits: String = self.rest().chars().take_while(|&one| is_part(one)).collect();
        self.at += digits.len();
        digits.parse::<f64>().ok().map(|_| Json::Number(digits))
    }

    fn parts<T>(&mut self, end: &str, part: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut found = Vec::new();
        if self.takes(end) {
            return Some(found);
        }
        loop {
            found.push(part(self)?);
            if self.takes(end) {
                return Some(found);
            }
            if !self.takes(",") {
                return None;
            }
        }
    }

    fn field(&mut self) -> Option<(String, Json)> {
        if !self.takes("\"") {
            return None;
        }
        let name = self.text()?;
        if !self.takes(":") {
            return None;
        }
        Some((name, self.value()?))
    }

    /// Reads a text behind its first quotation mark.
    fn text(&mut self) -> Option<String> {
        let mut found = String::new();
        loop {
            match self.next()? {
                '"' => return Some(found),
                '\\' => found.push(match self.next()? {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    'u' => self.escaped()?,
                    one => one,
                }),
                one => found.push(one),
            }
        }
    }

    /// Reads a character behind `\u`; one above U+FFFF is a pair of surrogates.
    fn escaped(&mut self) -> Option<char> {
        let first = self.four()?;
        if !(0xd800..0xdc00).contains(&first) {
            return Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        if !self.rest().starts_with("\\u") {
            return Some(char::REPLACEMENT_CHARACTER);
        }
        self.at += 2;
        let second = self.four()?;
        let whole = 0x10000 + ((first - 0xd800) << 10) + second.wrapping_sub(0xdc00);
        Some(char::from_u32(whole).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn four(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}
