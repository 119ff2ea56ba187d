//! NVIDIA's GPUs on the PCI bus, by files that wake none of them.

use std::fs;

use pci_ids::Device;

use super::Reach;
use super::system::read;
use crate::doctor::machine::GpuFacts;
use crate::profile::Catalog;
use crate::profile::gpu::Segment;

const NVIDIA: u16 = 0x10de;
/// Classes of display controllers: VGA, and 3D without a screen.
const CLASSES: [&str; 2] = ["0x0300", "0x0302"];

/// The cards, by address.
pub(super) fn gpus(reach: &Reach<'_>) -> Vec<GpuFacts> {
    let Ok(devices) = fs::read_dir(reach.path("sys/bus/pci/devices")) else { return Vec::new() };
    let mut found: Vec<_> =
        devices.flatten().filter_map(|entry| gpu(reach, entry.file_name().to_str()?)).collect();
    found.sort_by(|one, other| one.pci.cmp(&other.pci));
    found
}

fn gpu(reach: &Reach<'_>, address: &str) -> Option<GpuFacts> {
    let file = |name: &str| read(reach, &format!("sys/bus/pci/devices/{address}/{name}"));
    let class = file("class")?;
    if number(&file("vendor")?)? != NVIDIA || !CLASSES.iter().any(|it| class.starts_with(it)) {
        return None;
    }
    let device = number(&file("device")?)?;
    // What the driver calls it, where one is loaded: nearer to NVML's name than the public list.
    let by_driver = read(reach, &format!("proc/driver/nvidia/gpus/{address}/information"));
    let by_driver = by_driver.as_deref().and_then(model_of).map(str::to_owned);
    let by_list = Device::from_vid_pid(NVIDIA, device).map(|it| it.name().to_owned());
    let profiles = match (&by_driver, &by_list) {
        (Some(product), _) => profiles(reach.catalog, product, false),
        (None, Some(listed)) => of_listed(reach.catalog, listed),
        (None, None) => Vec::new(),
    };
    let driver = fs::read_link(reach.path(&format!("sys/bus/pci/devices/{address}/driver"))).ok();
    let kernel_driver =
        driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    let status = file("power/runtime_status");
    Some(GpuFacts {
        pci: Some(address.to_owned()),
        product: by_driver.or(by_list),
        profiles,
        // The bus powers down what no driver holds, and nothing that is asked here wakes that.
        asleep: kernel_driver.as_deref() == Some("nvidia")
            && status.is_some_and(|status| status == "suspended"),
        kernel_driver,
        ..GpuFacts::unknown()
    })
}

fn number(text: &str) -> Option<u16> {
    u16::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
}

/// The name in the driver's `Model:  NVIDIA GeForce RTX 3050 Laptop GPU`.
fn model_of(information: &str) -> Option<&str> {
    information.lines().find_map(|line| line.strip_prefix("Model:")).map(str::trim)
}

/// The profiles of a card that the PCI ID Repository calls, say, `GA107M [GeForce RTX 3050 Mobile]`.
/// Drivers call mobile cards `Laptop GPU`, those before Ampere by the name of the desktop's.
fn of_listed(catalog: &Catalog, listed: &str) -> Vec<String> {
    let name = listed.rsplit_once('[').map_or(listed, |(_, name)| name.trim_end_matches(']'));
    let short = name.split(" Mobile").next().unwrap_or(name);
    if short == name {
        return profiles(catalog, name, false);
    }
    let found = profiles(catalog, &format!("{short} Laptop GPU"), false);
    if found.is_empty() { profiles(catalog, short, true) } else { found }
}

fn profiles(catalog: &Catalog, product: &str, laptops: bool) -> Vec<String> {
    let all = catalog.gpus().unwrap_or_default();
    let fits = all.into_iter().filter(|gpu| gpu.goes_by(product));
    fits.filter(|gpu| !laptops || gpu.segment == Segment::Laptop).map(|gpu| gpu.name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_matched_by_their_public_names() {
        let catalog = Catalog::built_in();
        let of = |device| {
            let device = Device::from_vid_pid(NVIDIA, device).unwrap();
            of_listed(&catalog, device.name())
        };
        assert_eq!(of(0x25a2), ["rtx-3050-laptop-4gb"]);
        assert_eq!(of(0x2684), ["rtx-4090"]);
        assert_eq!(of(0x1f99), ["gtx-1650-laptop"], "its desktop sister bears the same name");
        assert_eq!(of(0x0020), [""; 0], "Riva TNT");
    }
}
