//! What is written on top of? Under the lock, before a change: the newest state and nothing beyond its end.

use crate::error::Result;

use crate::store::Store;

impl Store {
    /// Under the lock, before anything is written: the newest state, and no bytes beyond the committed end.
    pub(in crate::store) fn prepare(&mut self, now: i64) -> Result<()> {
        if self.log.is_prepared() {
            return Ok(());
        }
        if self.log.is_marked() {
            self.recover(now)?;
        }
        if self.is_behind()? {
            self.catch_up()?;
            self.log.forget_signature();
        }
        self.log.sign()?;
        self.log.check_is_ours()?;
        if self.log.report.tail.is_some() {
            // What others have synced since this store was opened is no tail: only a fresh look may cut.
            self.reload(&mut |_, _| {})?;
            self.log.cut_tail(now)?;
        }
        self.log.set_prepared();
        Ok(())
    }

    /// After a failed sync of somebody else: copies the committed part of the log into a fresh file and removes the mark.
    fn recover(&mut self, now: i64) -> Result<()> {
        self.reload(&mut |_, _| {})?;
        self.log.keep_tail(now)?;
        self.vectors.renew_rows(&self.state)?;
        if self.log.renew()? {
            self.reload(&mut |_, _| {})?;
            self.make_ready()?;
            self.sync_log()?;
        }
        self.log.remove_mark()?;
        self.log
            .report
            .notes
            .push("after a failed sync the log was copied into a fresh file".to_owned());
        Ok(())
    }
}
