//! Knows the instructions of this processor, and takes the fastest way that it has.
//!
//! A [`Cpu`] that names instructions exists only if the processor has them: every call into `x86.rs` and `arm.rs`
//! relies on that. The loops are written once, in [`super::sweep`], [`super::lanes`], [`super::codes`] and
//! [`super::planes`], and compiled for each way.

#[cfg(target_arch = "aarch64")]
mod arm;
#[cfg(target_arch = "x86_64")]
mod x86;

use super::codes::{Encoder, Loss};
use super::lanes;
use super::planes::{self, CODE_BYTES, Planes};
use super::sweep::{self, Candidate, Refinement, Survivor, SweepRun};

/// A way to compute that this processor can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu(CpuWay);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CpuWay {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
    #[cfg(target_arch = "aarch64")]
    DotProd,
}

impl Cpu {
    /// The fastest way.
    #[must_use]
    pub fn best() -> Self {
        Self::every().pop().unwrap_or_else(Self::portable)
    }

    /// The way that every processor can go.
    #[must_use]
    pub fn portable() -> Self {
        Self(CpuWay::Portable)
    }

    /// Every way this processor can go, the fastest last.
    #[must_use]
    pub fn every() -> Vec<Self> {
        #[cfg_attr(
            not(any(target_arch = "x86_64", target_arch = "aarch64")),
            expect(unused_mut, reason = "only these have more")
        )]
        let mut ways = vec![Self(CpuWay::Portable)];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            ways.push(Self(CpuWay::Avx2));
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vnni")
            {
                ways.push(Self(CpuWay::Avx512Vnni));
            }
        }
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("dotprod") {
            ways.push(Self(CpuWay::DotProd));
        }
        ways
    }

    /// See [`lanes::dot_and_square`].
    #[inline]
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(super) fn dot_and_square(self, query: &[f64], row: &[f32]) -> (f64, f64) {
        match self.0 {
            // SAFETY: these ways exist only if the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            CpuWay::Avx512Vnni => unsafe { x86::dot_and_square_avx512(query, row) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            CpuWay::Avx2 => unsafe { x86::dot_and_square_avx2(query, row) },
            _ => lanes::dot_and_square(query, row),
        }
    }

    /// Makes the codes of a row.
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(super) fn encode(self, row: &[f32], encoder: &mut Encoder) -> Loss {
        match self.0 {
            // SAFETY: these ways exist only if the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            CpuWay::Avx512Vnni => unsafe { x86::encode_avx512(row, encoder) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            CpuWay::Avx2 => unsafe { x86::encode_avx2(row, encoder) },
            _ => encoder.encode(row),
        }
    }

    /// See [`planes::best_product`]. Where nothing is said of x86 below, a processor counts bits as it is.
    #[inline]
    #[cfg_attr(target_arch = "x86_64", allow(unsafe_code))]
    pub(super) fn best_product(self, parts: &[Planes], codes: &[[u8; CODE_BYTES]]) -> i32 {
        match self.0 {
            // SAFETY: these ways exist only if the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            CpuWay::Avx2 | CpuWay::Avx512Vnni => unsafe { x86::best_product_popcnt(parts, codes) },
            _ => planes::best_product(parts, codes),
        }
    }

    /// See [`sweep::sweep`].
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), allow(unsafe_code))]
    pub(super) fn sweep<const W: usize>(self, run: &SweepRun<'_, W>, found: &mut Vec<Survivor>) {
        match self.0 {
            CpuWay::Portable => sweep::sweep(sweep::Portable, run, found),
            // SAFETY: these ways exist only if the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            CpuWay::Avx2 => unsafe { x86::sweep_avx2(run, found) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            CpuWay::Avx512Vnni => unsafe { x86::sweep_avx512_vnni(run, found) },
            // SAFETY: as above.
            #[cfg(target_arch = "aarch64")]
            CpuWay::DotProd => unsafe { arm::sweep_dot_prod(run, found) },
        }
    }

    /// See [`sweep::refine`].
    #[cfg_attr(any(target_arch = "x86_64", target_arch = "aarch64"), allow(unsafe_code))]
    pub(super) fn refine(self, with: &Refinement<'_>, found: &[Survivor], kept: &mut Vec<Candidate>) {
        match self.0 {
            // SAFETY: these ways exist only if the processor has the instructions.
            #[cfg(target_arch = "x86_64")]
            CpuWay::Avx2 => unsafe { x86::refine_avx2(with, found, kept) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            CpuWay::Avx512Vnni => unsafe { x86::refine_avx512_vnni(with, found, kept) },
            _ => sweep::refine(sweep::Portable, with, found, kept),
        }
    }
}
