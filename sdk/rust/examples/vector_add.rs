//! The first minute: two arrays, one kernel, one request. Usage: vector_add [COUNT]; GPUREST_URL names the service.

use std::env;
use std::process::ExitCode;

use gpurest::{Client, RunArgument};

const SOURCE: &str = r#"
extern "C" __global__ void vadd(const float *a, const float *b, float *c, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
"#;
const COUNT: i32 = 100_000;
const COUNT_MAX: i32 = 1_000_000;
const BLOCK: u32 = 256;

/// The number of wrong sums.
fn add(client: &Client, n: i32) -> gpurest::Result<usize> {
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
    let mut c = vec![0.0f32; a.len()];
    let mut arguments = [RunArgument::input(&a), RunArgument::input(&b), RunArgument::output(&mut c), RunArgument::value(&n)];
    let times = client.run(SOURCE, "vadd", (n.unsigned_abs() + BLOCK - 1) / BLOCK, BLOCK, &mut arguments)?;
    let wrong = (0..c.len()).filter(|&i| c[i] != a[i] + b[i]).count();
    println!("{} sums, {} wrong; the kernel took {:.1} us", n, wrong, times.gpu_us);
    Ok(wrong)
}

fn main() -> ExitCode {
    let n = env::args().nth(1).map_or(Some(COUNT), |count| count.parse().ok().filter(|n| (1..=COUNT_MAX).contains(n)));
    let n = match n {
        Some(n) => n,
        None => {
            eprintln!("usage: vector_add [COUNT], from 1 to {}", COUNT_MAX);
            return ExitCode::FAILURE;
        }
    };
    match Client::open().and_then(|client| add(&client, n)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprint!("vector_add: {}\n{}", why, why.log());
            ExitCode::FAILURE
        }
    }
}
