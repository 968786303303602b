//! Tells the linker that the names of Node-API come from the program that loads the library.

fn main() {
    napi_build::setup();
}
