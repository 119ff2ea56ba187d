//! A real Chromium without a window, driven over its DevTools protocol.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket, client};

/// Names under which it is installed.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// Much longer than anything here takes, on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(120);

/// A browser, gone with its profile when this is dropped.
pub(crate) struct Browser {
    socket: WebSocket<TcpStream>,
    last: u64,
    session: String,
    /// Events of the page that have come while something else was waited for.
    events: Vec<Value>,
    process: Child,
    _profile: TempDir,
}

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// In pixels.
    pub(crate) width: u32,
    /// `light` or `dark`.
    pub(crate) scheme: &'static str,
}

impl Browser {
    /// Starts it; none where it is not installed and need not be.
    pub(crate) fn start() -> Option<Self> {
        let program = program();
        assert!(
            program.is_some() || cfg!(debug_assertions),
            "no Chromium; `make test` installs one"
        );
        let program = program?;
        let profile = tempfile::tempdir().unwrap();
        let log = profile.path().join("log");
        let mut process = Command::new(program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"])
            .args(["--disable-dev-shm-usage"])
            .args(["--no-first-run", "--disable-background-networking", "--hide-scrollbars"])
            .args(["--disable-component-update", "--disable-sync", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Its own words go to a file from then on, so that the pipe never fills.
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = lines
            .find_map(|line| Some(line.ok()?.strip_prefix("DevTools listening on ")?.to_owned()))
            .expect("Chromium ended before it listened");
        let mut rest = File::create(log).unwrap();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = std::io::Write::write_all(&mut rest, format!("{line}\n").as_bytes());
            }
        });
        let host = address.trim_start_matches("ws://").split('/').next().unwrap().to_owned();
        let stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (socket, _) = client(address, stream).unwrap();
        let (session, events) = (String::new(), Vec::new());
        let mut browser = Self { socket, last: 0, session, events, process, _profile: profile };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let id = &target["targetId"];
        let attached =
            browser.call("Target.attachToTarget", &json!({"targetId": id, "flatten": true}));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Opens a file as it is looked at so, and waits until it is there. What the page complains of or
    /// asks of the network comes back.
    pub(crate) fn open(&mut self, file: &Path, view: View) -> Vec<String> {
        let View { width, scheme } = view;
        let metrics = json!({
            "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600
        });
        self.call("Emulation.setDeviceMetricsOverride", &metrics);
        let feature = json!({"name": "prefers-color-scheme", "value": scheme});
        self.call("Emulation.setEmulatedMedia", &json!({"features": [feature]}));
        self.events.clear();
        let url = format!("file://{}", file.display());
        self.call("Page.navigate", &json!({"url": url}));
        self.wait_for("Page.loadEventFired");
        let complaint = |event: &Value| {
            let asked = event["params"]["request"]["url"].as_str().unwrap_or_default();
            match event["method"].as_str()? {
                "Network.requestWillBeSent" if asked == url => None,
                "Runtime.exceptionThrown"
                | "Runtime.consoleAPICalled"
                | "Log.entryAdded"
                | "Network.requestWillBeSent" => Some(event["params"].to_string()),
                _ => None,
            }
        };
        self.events.iter().filter_map(complaint).collect()
    }

    /// The value of an expression of JavaScript.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", &asked);
        assert!(answer.get("exceptionDetails").is_none(), "{answer}");
        answer["result"]["value"].clone()
    }

    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        let mut message = json!({"id": id, "method": method, "params": params});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            let answer = self.read();
            if answer["id"] == json!(id) {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    fn wait_for(&mut self, method: &str) {
        while !self.events.iter().any(|event| event["method"] == json!(method)) {
            self.read();
        }
    }

    /// The next message; events are kept.
    fn read(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.read().unwrap() {
                let message: Value = serde_json::from_str(&text).unwrap();
                if message.get("method").is_some() {
                    self.events.push(message.clone());
                }
                return message;
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("VRAMFIT_CHROMIUM") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let found =
        |name: &&str| std::env::split_paths(&path).map(|it| it.join(name)).find(|it| it.is_file());
    NAMES.iter().find_map(found)
}
