//! The `sim-broker` program.

fn main() -> std::process::ExitCode {
    sim_broker::program::main()
}
