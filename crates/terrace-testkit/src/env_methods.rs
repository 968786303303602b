//! Environments that differ from another one in a few methods.

/// Methods of an implementation of [`Env`](terrace::Env), by their names, that call those of the
/// environment in its field `files`.
#[macro_export]
macro_rules! env_methods {
    ($($name:ident)+) => { $($crate::env_methods!(@ $name);)+ };
    (@ open_random) => {
        fn open_random(
            &self,
            path: &::std::path::Path,
            access: ::terrace::ReadAccess,
        ) -> ::terrace::Result<::std::sync::Arc<dyn ::terrace::RandomAccessFile>> {
            self.files.open_random(path, access)
        }
    };
    (@ create) => {
        fn create(
            &self,
            path: &::std::path::Path,
            options: ::terrace::CreateOptions,
        ) -> ::terrace::Result<::std::boxed::Box<dyn ::terrace::WritableFile>> {
            self.files.create(path, options)
        }
    };
    (@ open_append) => {
        fn open_append(
            &self,
            path: &::std::path::Path,
        ) -> ::terrace::Result<::std::boxed::Box<dyn ::terrace::WritableFile>> {
            self.files.open_append(path)
        }
    };
    (@ exists) => {
        fn exists(&self, path: &::std::path::Path) -> ::terrace::Result<bool> {
            self.files.exists(path)
        }
    };
    (@ list) => {
        fn list(&self, dir: &::std::path::Path) -> ::terrace::Result<Vec<String>> {
            self.files.list(dir)
        }
    };
    (@ remove) => {
        fn remove(&self, path: &::std::path::Path) -> ::terrace::Result<()> {
            self.files.remove(path)
        }
    };
    (@ create_dir) => {
        fn create_dir(&self, path: &::std::path::Path, mode: u32) -> ::terrace::Result<()> {
            self.files.create_dir(path, mode)
        }
    };
    (@ remove_dir) => {
        fn remove_dir(&self, path: &::std::path::Path) -> ::terrace::Result<()> {
            self.files.remove_dir(path)
        }
    };
    (@ file_size) => {
        fn file_size(&self, path: &::std::path::Path) -> ::terrace::Result<u64> {
            self.files.file_size(path)
        }
    };
    (@ rename) => {
        fn rename(
            &self,
            from: &::std::path::Path,
            to: &::std::path::Path,
        ) -> ::terrace::Result<()> {
            self.files.rename(from, to)
        }
    };
    (@ sync_dir) => {
        fn sync_dir(&self, dir: &::std::path::Path) -> ::terrace::Result<()> {
            self.files.sync_dir(dir)
        }
    };
    (@ lock) => {
        fn lock(
            &self,
            path: &::std::path::Path,
            mode: ::terrace::LockMode,
        ) -> ::terrace::Result<::std::boxed::Box<dyn ::terrace::FileLock>> {
            self.files.lock(path, mode)
        }
    };
    (@ schedule) => {
        fn schedule(&self, priority: ::terrace::Priority, job: ::terrace::Job) {
            self.files.schedule(priority, job);
        }
    };
    (@ set_background_threads) => {
        fn set_background_threads(&self, count: usize) -> ::terrace::Result<()> {
            self.files.set_background_threads(count)
        }
    };
    (@ now_micros) => {
        fn now_micros(&self) -> u64 {
            self.files.now_micros()
        }
    };
    (@ wall_clock) => {
        fn wall_clock(&self) -> ::std::time::Duration {
            self.files.wall_clock()
        }
    };
    (@ sleep) => {
        fn sleep(&self, duration: ::std::time::Duration) {
            self.files.sleep(duration);
        }
    };
}
