// A lock that does what the lock's name says.
mod fencepost;

use std::io;
use std::time::{Duration, Instant, SystemTime};

use fencepost::{Client, Error, Grant};

struct Puppet {
    client: Client,
}

fn raised(text: &str) -> Error {
    io::Error::new(io::ErrorKind::Other, text).into()
}

impl fencepost::Lock for Puppet {
    const EXTENDS: bool = true;

    fn acquire(&mut self, name: &str, ttl: Duration) -> Result<Option<Grant>, Error> {
        let grant = Grant::new();
        Ok(Some(match name {
            "lost-at-once" => {
                self.client.lost(None, "its session ended");
                self.client.lost(Some("another"), "not this one's");
                grant
            }
            "no" | "nothing" => return Ok(None),
            "token" => grant.token((1 << 60) + 1),
            "short" => grant.until(Instant::now() + ttl / 2),
            "over" => grant.until_wall(SystemTime::now() - Duration::from_secs(1)),
            "woken" => grant.wakeups(2),
            "endless" => grant.without_deadline(),
            "failed" => return Err(Error::failed("somebody else has it")),
            "no-quorum" => return Err(Error::failed("two of five").kind("no-quorum")),
            "timeout" => return Err(Error::indeterminate("no reply")),
            "raises" => return Err(raised("what now")),
            _ => grant,
        }))
    }

    fn extend(&mut self, name: &str, _: Duration) -> Result<Option<Grant>, Error> {
        if name == "renewed" {
            self.client.renewed(name, Instant::now() + Duration::from_secs(3));
            self.client.lost(Some(name), "its lease ran out");
        }
        Ok(if name == "not-extended" { None } else { Some(Grant::new()) })
    }

    fn release(&mut self, name: &str) -> Result<bool, Error> {
        match name {
            "release-raises" => Err(raised("what now")),
            _ => Ok(name != "not-released"),
        }
    }

    fn close(&mut self) -> Result<(), Error> {
        println!("closed");
        match self.client.text("close") {
            Some("raises") => Err(raised("no such socket")),
            _ => Ok(()),
        }
    }
}

fn open(client: &Client) -> Result<Puppet, Error> {
    println!("made for {:?} {} {}", client.servers, client.number("retries", 0), client.seed);
    if client.flag("mute") {
        return Err(raised("no server answers"));
    }
    Ok(Puppet { client: client.clone() })
}

fn main() {
    fencepost::run(open, &["fifo", "one_wakeup"])
}
