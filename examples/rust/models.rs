// Train a forest and a boosted model on generated data, save, load, predict, in Rust without crates:
//   rustc --edition 2021 -C opt-level=2 models.rs -L native=$(pkg-config --variable=libdir rpo)
//   ./models folder
// What is used of rpo.h is declared by hand, in `ffi`; the rest of the file has no other unsafe parts
// than the calls themselves.

use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr::{null, null_mut};

mod ffi {
    use super::*;

    macro_rules! handles {
        ($($name:ident)*) => { $(#[repr(C)] pub struct $name { _opaque: [u8; 0] })* };
    }
    handles!(Options Features Forest Boost);

    #[repr(C)]
    pub struct Error {
        pub code: i32,
        pub reserved: i32,
        pub message: [c_char; 248],
    }

    #[repr(C)]
    pub struct Control {
        pub n_threads: i32,
        pub reserved: i32,
        pub progress: Option<extern "C" fn(*mut c_void, i64, i64) -> i32>,
        pub user: *mut c_void,
        pub work: *mut f64,
    }

    #[repr(C)]
    pub struct Matrix {
        pub rows: i64,
        pub cols: i64,
        pub format: i32,
        pub dtype: i32,
        pub index: i32,
        pub reserved: i32,
        pub data: *const c_void,
        pub row_stride: i64,
        pub col_stride: i64,
        pub indptr: *const c_void,
        pub indices: *const c_void,
    }

    #[repr(C)]
    pub struct Projection {
        pub kind: i32,
        pub shared: i32,
        pub components: i64,
        pub sparsity: f64,
        pub seed: u64,
        pub stream: u64,
        pub matrix: *const f64,
    }

    type Loss = extern "C" fn(*mut c_void, i64, *const i32, *const f32, *mut f32, *mut f32) -> i32;

    #[repr(C)]
    pub struct BoostData {
        pub y: *const Matrix,
        pub weight: *const f64,
        pub entry_weight: *const Matrix,
        pub watched: *const u8,
        pub start: *const f64,
        pub loss: Option<Loss>,
        pub user: *mut c_void,
    }

    pub const OK: i32 = 0;
    pub const F32: i32 = 0;
    pub const F64: i32 = 1;
    pub const GAUSSIAN: i32 = 1;
    pub const LOGISTIC: f64 = 3.0;
    pub const N_TREES: i32 = 2;
    pub const MAX_FEATURES: i32 = 14;
    pub const MAX_LEAF_NODES: i32 = 15;
    pub const LOSS: i32 = 50;
    pub const LEARNING_RATE: i32 = 51;
    pub const L2: i32 = 55;

    #[link(name = "rpo")]
    extern "C" {
        pub fn rpo_options_new(out: *mut *mut Options, err: *mut Error) -> i32;
        pub fn rpo_options_free(options: *mut Options);
        pub fn rpo_options_set(options: *mut Options, id: i32, value: f64, err: *mut Error) -> i32;
        pub fn rpo_features_new(
            x: *const Matrix,
            max_bins: i32,
            control: *const Control,
            out: *mut *mut Features,
            err: *mut Error,
        ) -> i32;
        pub fn rpo_features_free(features: *mut Features);
        pub fn rpo_forest_fit(
            options: *const Options,
            features: *const Features,
            target: *const Matrix,
            labels: *const Matrix,
            fallback: *const f64,
            weight: *const f64,
            projection: *const Projection,
            control: *const Control,
            out: *mut *mut Forest,
            err: *mut Error,
        ) -> i32;
        pub fn rpo_forest_free(forest: *mut Forest);
        pub fn rpo_forest_trees(forest: *const Forest) -> i64;
        pub fn rpo_forest_bytes(forest: *const Forest) -> i64;
        pub fn rpo_forest_is_boosted(forest: *const Forest) -> i32;
        pub fn rpo_forest_save(
            forest: *const Forest,
            path: *const c_char,
            note: *const c_void,
            note_bytes: i64,
            err: *mut Error,
        ) -> i32;
        pub fn rpo_forest_load(path: *const c_char, out: *mut *mut Forest, err: *mut Error) -> i32;
        pub fn rpo_forest_predict_topk(
            forest: *const Forest,
            x: *const Matrix,
            k: i64,
            control: *const Control,
            out_index: *mut i64,
            out_score: *mut f64,
            err: *mut Error,
        ) -> i32;
        pub fn rpo_boost_new(
            options: *const Options,
            features: *const Features,
            data: *const BoostData,
            projection: *const Projection,
            control: *const Control,
            out: *mut *mut Boost,
            err: *mut Error,
        ) -> i32;
        pub fn rpo_boost_free(boost: *mut Boost);
        pub fn rpo_boost_run(
            boost: *mut Boost,
            rounds: i64,
            control: *const Control,
            err: *mut Error,
        ) -> i32;
        pub fn rpo_boost_losses(
            boost: *mut Boost,
            train: *mut f64,
            watched: *mut f64,
            err: *mut Error,
        ) -> i32;
        pub fn rpo_boost_forest(
            boost: *const Boost,
            rounds: i64,
            out: *mut *mut Forest,
            err: *mut Error,
        ) -> i32;
    }
}

/// A handle that frees itself.
struct Handle<T>(*mut T, unsafe extern "C" fn(*mut T));

impl<T> Drop for Handle<T> {
    fn drop(&mut self) {
        unsafe { (self.1)(self.0) }
    }
}

/// Runs a call of the library; its message, when it fails.
fn call(function: impl FnOnce(*mut ffi::Error) -> i32) -> Result<(), String> {
    let mut err = ffi::Error { code: 0, reserved: 0, message: [0; 248] };
    if function(&mut err) == ffi::OK {
        return Ok(());
    }
    let message = unsafe { CStr::from_ptr(err.message.as_ptr()) };
    Err(message.to_string_lossy().into_owned())
}

/// The same of a call that makes a handle.
fn make<T>(
    free: unsafe extern "C" fn(*mut T),
    function: impl FnOnce(*mut *mut T, *mut ffi::Error) -> i32,
) -> Result<Handle<T>, String> {
    let mut handle = null_mut();
    call(|err| function(&mut handle, err))?;
    Ok(Handle(handle, free))
}

const ROWS: usize = 1000;
const HELD_OUT: usize = 200;
const INPUTS: usize = 8;
const OUTPUTS: usize = 30;
const BEST: usize = 3;
const SHOWN: usize = 5;
const ROUNDS: usize = 60;

const TWO_THREADS: ffi::Control =
    ffi::Control { n_threads: 2, reserved: 0, progress: None, user: null_mut(), work: null_mut() };

/// A row belongs to the outputs that its inputs point at.
fn generate() -> (Vec<f64>, Vec<f32>) {
    let (mut x, mut y) = (vec![0.0; ROWS * INPUTS], vec![0.0; ROWS * OUTPUTS]);
    let mut state: u32 = 1;
    for i in 0..ROWS {
        for j in 0..INPUTS {
            state = state.wrapping_mul(1664525).wrapping_add(1013904223);
            let value = f64::from(state >> 8) / f64::from(1 << 24);
            x[i * INPUTS + j] = value;
            if value > 0.5 {
                y[i * OUTPUTS + (j * 7) % OUTPUTS] = 1.0;
            }
        }
    }
    (x, y)
}

/// Row-major numbers as the library sees them; they must outlive what is made here.
fn view<T>(data: &[T], dtype: i32, cols: usize) -> ffi::Matrix {
    ffi::Matrix {
        rows: (data.len() / cols) as i64,
        cols: cols as i64,
        format: 0, // dense
        dtype,
        index: 0,
        reserved: 0,
        data: data.as_ptr().cast(),
        row_stride: cols as i64,
        col_stride: 1,
        indptr: null(),
        indices: null(),
    }
}

fn gaussian(components: i64) -> ffi::Projection {
    ffi::Projection {
        kind: ffi::GAUSSIAN,
        shared: 0,
        components,
        sparsity: 0.0,
        seed: 0,
        stream: 0,
        matrix: null(),
    }
}

fn options(values: &[(i32, f64)]) -> Result<Handle<ffi::Options>, String> {
    let made = make(ffi::rpo_options_free, |out, err| unsafe { ffi::rpo_options_new(out, err) })?;
    for &(id, value) in values {
        call(|err| unsafe { ffi::rpo_options_set(made.0, id, value, err) })?;
    }
    Ok(made)
}

fn encode(x: &ffi::Matrix, max_bins: i32) -> Result<Handle<ffi::Features>, String> {
    make(ffi::rpo_features_free, |out, err| unsafe {
        ffi::rpo_features_new(x, max_bins, &TWO_THREADS, out, err)
    })
}

/// Saves, loads, prints the best outputs of some rows; scores of boosting are log-odds.
fn try_out(model: &Handle<ffi::Forest>, path: &str, x: &[f64], first: usize) -> Result<(), String> {
    let path = CString::new(path).map_err(|error| error.to_string())?;
    call(|err| unsafe { ffi::rpo_forest_save(model.0, path.as_ptr(), null(), 0, err) })?;
    let loaded = make(ffi::rpo_forest_free, |out, err| unsafe {
        ffi::rpo_forest_load(path.as_ptr(), out, err)
    })?;
    let shown = view(&x[first * INPUTS..(first + SHOWN) * INPUTS], ffi::F64, INPUTS);
    let (mut index, mut score) = ([0_i64; SHOWN * BEST], [0.0_f64; SHOWN * BEST]);
    call(|err| unsafe {
        let (index, score) = (index.as_mut_ptr(), score.as_mut_ptr());
        ffi::rpo_forest_predict_topk(loaded.0, &shown, BEST as i64, &TWO_THREADS, index, score, err)
    })?;
    let boosted = unsafe { ffi::rpo_forest_is_boosted(loaded.0) } != 0;
    for i in 0..SHOWN {
        print!("row {}:", first + i);
        for at in i * BEST..(i + 1) * BEST {
            let share = if boosted { 1.0 / (1.0 + (-score[at]).exp()) } else { score[at] };
            print!("  output {:2} {:.2}", index[at], share);
        }
        println!();
    }
    Ok(())
}

fn forest(x: &[f64], y: &[f32], folder: &str) -> Result<(), String> {
    let options = options(&[(ffi::N_TREES, 50.0), (ffi::MAX_FEATURES, 3.0)])?;
    let features = encode(&view(x, ffi::F64, INPUTS), 0)?;
    let (target, projection) = (view(y, ffi::F32, OUTPUTS), gaussian(5));
    let model = make(ffi::rpo_forest_free, |out, err| unsafe {
        ffi::rpo_forest_fit(
            options.0, features.0, &target, null(), null(), null(), &projection, &TWO_THREADS, out, err,
        )
    })?;
    let (trees, bytes) =
        unsafe { (ffi::rpo_forest_trees(model.0), ffi::rpo_forest_bytes(model.0)) };
    println!("{trees} trees, {bytes} bytes");
    try_out(&model, &format!("{folder}/forest.rpo"), x, 0)
}

fn boosting(x: &[f64], y: &[f32], folder: &str) -> Result<(), String> {
    let options = options(&[
        (ffi::LOSS, ffi::LOGISTIC),
        (ffi::LEARNING_RATE, 0.3),
        (ffi::MAX_LEAF_NODES, 16.0),
        (ffi::L2, 1.0),
    ])?;
    let features = encode(&view(x, ffi::F64, INPUTS), 255)?;
    let watched: Vec<u8> = (0..ROWS).map(|i| u8::from(i >= ROWS - HELD_OUT)).collect();
    let (target, projection) = (view(y, ffi::F32, OUTPUTS), gaussian(1));
    let data = ffi::BoostData {
        y: &target,
        weight: null(),
        entry_weight: null(),
        watched: watched.as_ptr(),
        start: null(),
        loss: None,
        user: null_mut(),
    };
    // Freed before the features, which it borrows.
    let boost = make(ffi::rpo_boost_free, |out, err| unsafe {
        ffi::rpo_boost_new(options.0, features.0, &data, &projection, &TWO_THREADS, out, err)
    })?;
    call(|err| unsafe { ffi::rpo_boost_run(boost.0, ROUNDS as i64, &TWO_THREADS, err) })?;
    let mut loss = [0.0_f64; ROUNDS + 1];
    call(|err| unsafe { ffi::rpo_boost_losses(boost.0, null_mut(), loss.as_mut_ptr(), err) })?;
    let best = (1..=ROUNDS).min_by(|&a, &b| loss[a].total_cmp(&loss[b])).unwrap_or(1);
    println!("loss {:.4} at first, {:.4} after {best} rounds", loss[0], loss[best]);
    let model = make(ffi::rpo_forest_free, |out, err| unsafe {
        ffi::rpo_boost_forest(boost.0, best as i64, out, err)
    })?;
    try_out(&model, &format!("{folder}/boosting.rpo"), x, ROWS - SHOWN)
}

fn main() {
    let (x, y) = generate();
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_string());
    let done = forest(&x, &y, &folder).and_then(|()| boosting(&x, &y, &folder));
    if let Err(message) = done {
        eprintln!("{message}");
        std::process::exit(1);
    }
}
