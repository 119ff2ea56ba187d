//! Recordings of runs that were never run, with noise from a fixed seed.

use vramfit::units::Bytes;
use vramfit::watch::{
    Entry, Event, Gpu, Pass, RECORDING_SCHEMA, Reading, Recording, Slowdown, Step, Watched,
};

/// The program's process.
pub(crate) const PID: u32 = 4242;
const MIB: u64 = 1 << 20;

/// Numbers that look random and are the same each time (Steele, Lea and Flood's SplitMix64).
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// From 0 to 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) as f64 / u64::MAX as f64
    }

    /// From `low` to `high`.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        (high - low).mul_add(self.next(), low)
    }
}

/// A 4 GB laptop card.
pub(crate) fn laptop() -> Gpu {
    Gpu {
        index: 0,
        name: "NVIDIA GeForce RTX 3050 Laptop GPU".to_owned(),
        laptop: true,
        total: Bytes::gib(4),
        held: Bytes::mib(300),
        highest_clock: Some(2100),
        power_limit: Some(40_000),
        ..Gpu::default()
    }
}

/// A 24 GB card of a desktop.
pub(crate) fn desktop() -> Gpu {
    Gpu {
        index: 0,
        name: "NVIDIA GeForce RTX 3090".to_owned(),
        total: Bytes::gib(24),
        held: Bytes::mib(600),
        highest_clock: Some(2100),
        power_limit: Some(350_000),
        ..Gpu::default()
    }
}

/// A run of one process on one GPU, one step and two readings each half second.
pub(crate) struct Run {
    pub(crate) recording: Recording,
    pub(crate) noise: Noise,
    pid: u32,
    at: f64,
    steps: u64,
}

/// What happens in one step.
pub(crate) struct Moment {
    pub(crate) step: Step,
    pub(crate) reading: Reading,
}

impl Run {
    pub(crate) fn new(gpu: Gpu) -> Self {
        let watched = Watched {
            schema: RECORDING_SCHEMA,
            vramfit: env!("CARGO_PKG_VERSION").to_owned(),
            started: 1_760_000_000,
            command: ["python", "train.py"].map(str::to_owned).to_vec(),
            gpus: vec![gpu],
            may_spill: false,
        };
        let recording = Recording { watched, entries: Vec::new() };
        Self { recording, noise: Noise::new(1), pid: PID, at: 4.0, steps: 0 }
    }

    /// Of a distributed run.
    pub(crate) fn rank(mut self, rank: u32) -> Self {
        self.pid = PID + rank;
        let version = "2.11.0".to_owned();
        self.event(Event::Torch { pid: self.pid, rank: Some(rank), version });
        self
    }

    /// On Windows, where the driver may spill.
    pub(crate) fn on_windows(mut self) -> Self {
        self.recording.watched.may_spill = true;
        self
    }

    pub(crate) fn seed(mut self, seed: u64) -> Self {
        self.noise = Noise::new(seed);
        self
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.recording.entries.push(Entry { at: (self.at * 1e3).round() / 1e3, event });
    }

    /// So many steps, each as `change` makes it of a healthy one; it is given the step's number.
    pub(crate) fn steps(
        mut self,
        count: u64,
        mut change: impl FnMut(u64, &mut Moment, &mut Noise),
    ) -> Self {
        for _ in 0..count {
            self.steps += 1;
            let mut moment = self.healthy();
            change(self.steps, &mut moment, &mut self.noise);
            let Moment { step, reading } = moment;
            let seconds = step.seconds.unwrap_or(0.5);
            for _ in 0..2 {
                self.at += seconds / 2.0;
                self.event(Event::Reading(reading.clone()));
            }
            self.event(Event::Step(step));
        }
        self
    }

    /// A step of half a second that holds the same as the one before, up to what an allocator rounds.
    fn healthy(&mut self) -> Moment {
        let gpu = &self.recording.watched.gpus[0];
        let (held, total) = (gpu.held, gpu.total);
        let highest = gpu.highest_clock.unwrap_or(2000);
        let limit = gpu.power_limit.unwrap_or(200_000);
        let noise = &mut self.noise;
        let base = total.0 / 4;
        let rounding = (noise.next() * 4.0) as u64 * 512;
        let step = Step {
            pid: self.pid,
            step: self.steps,
            seconds: (self.steps > 1).then(|| noise.between(0.48, 0.53)),
            loader_seconds: Some(noise.between(0.001, 0.02)),
            allocated: Bytes(base + rounding),
            allocated_peak: Bytes(base * 2 + rounding),
            reserved: Bytes(base * 2 + 200 * MIB),
            retries: 0,
            collected: Some([self.steps / 4, self.steps / 40, 0]),
            graphs: Some(1 + u64::from(noise.next() < 0.3)),
        };
        let reading = Reading {
            gpu: 0,
            used: Bytes(held.0 + base * 2 + 400 * MIB),
            process: Some(Bytes(base * 2 + 400 * MIB)),
            utilisation: Some(noise.between(93.0, 100.0) as u32),
            clock: Some((f64::from(highest) * noise.between(0.84, 0.88)) as u32),
            power: Some((f64::from(limit) * noise.between(0.85, 0.95)) as u32),
            temperature: Some(noise.between(66.0, 71.0) as u32),
            slowdowns: Vec::new(),
            received: Some(noise.between(50e6, 150e6) as u64),
            sent: Some(noise.between(0.0, 5e6) as u64),
        };
        Moment { step, reading }
    }

    /// So many forward passes in evaluation, of 20 ms each, as `change` makes them of one under
    /// `no_grad`.
    pub(crate) fn passes(mut self, count: u64, change: impl Fn(u64, &mut Pass)) -> Self {
        let held = Bytes(self.recording.watched.gpus[0].total.0 / 4);
        for index in 0..count {
            self.at += 0.02;
            let mut pass = Pass {
                pid: self.pid,
                step: self.steps,
                model: "Net".to_owned(),
                has_graph: false,
                allocated: Bytes(held.0 + MIB),
                allocated_peak: Bytes(held.0 + 8 * MIB),
                trained: false,
            };
            change(index, &mut pass);
            self.event(Event::Pass(pass));
        }
        self
    }

    /// Time goes by, with readings alone, every half second.
    pub(crate) fn readings(
        mut self,
        count: u64,
        mut change: impl FnMut(u64, &mut Reading, &mut Noise),
    ) -> Self {
        for index in 0..count {
            self.at += 0.5;
            let mut reading = self.healthy().reading;
            change(index, &mut reading, &mut self.noise);
            self.event(Event::Reading(reading));
        }
        self
    }

    pub(crate) fn end(mut self) -> Recording {
        self.event(Event::Ended { status: Some(0), signal: None });
        self.recording
    }
}

/// Windows' driver puts into host memory what comes from step 40 on.
pub(crate) fn spill() -> Recording {
    let run = Run::new(laptop()).on_windows();
    run.steps(100, |step, moment, noise| {
        if step > 40 {
            moment.step.seconds = Some(noise.between(2.1, 3.4));
            moment.reading.used = Bytes::mib(4020);
            moment.reading.process = None;
            moment.reading.received = Some(noise.between(2e9, 5e9) as u64);
            moment.reading.sent = Some(noise.between(1e9, 3e9) as u64);
        }
    })
    .end()
}

/// A laptop that gets hot after a minute.
pub(crate) fn throttle() -> Recording {
    Run::new(laptop())
        .steps(200, |step, moment, noise| {
            if step > 120 {
                moment.step.seconds = Some(noise.between(0.7, 0.9));
                moment.reading.clock = Some(noise.between(1050.0, 1250.0) as u32);
                moment.reading.temperature = Some(noise.between(86.0, 88.9) as u32);
                moment.reading.slowdowns = vec![Slowdown::Heat];
            }
        })
        .end()
}
