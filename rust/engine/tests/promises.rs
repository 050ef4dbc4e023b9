//! All promises of the engine as one program, one file a promise.
//!
//! So it is linked once, and no processor waits while another tries the longest of them.

mod around;
mod crash_disk;
mod fuzzing;
mod scenario;
mod slow;
mod stage;
mod upkeep;
mod vectors;

mod a_broken_batch_stays_broken;
mod a_copy_outside_is_whole_or_none;
mod a_crash_keeps_what_each_mode_promises;
mod a_draft_that_is_gone_is_no_error;
mod a_failed_disk_is_no_lie;
mod a_failed_sync_stops_every_writer;
mod a_kept_hint_is_the_one_at_its_path;
mod a_killed_repair_says_so;
mod a_lease_is_short;
mod a_link_is_never_followed;
mod a_refused_file_is_named;
mod a_replaced_file_is_no_damage;
mod a_second_writer_sees_the_first;
mod a_slow_writer_brings_nothing_back;
mod a_verdict_is_of_one_moment;
mod a_waiting_writer_gets_its_turn;
mod an_act_is_of_several_records;
mod an_erasure_is_whole_or_none;
mod an_erasure_looks_everywhere;
mod an_index_is_sealed_beside_searches;
mod care_leaves_new_rows_alone;
mod codes_are_born_with_their_record;
mod every_edit_is_found;
mod every_processor_computes_the_same;
mod json_canonical_form_is_unique;
mod no_bytes_break_a_reader;
mod one_handle_for_a_program;
mod rows_are_durable_before_the_log;
mod text_search_equals_brute_force;
mod the_past_stays_within_reach;
mod the_past_weighs_little;
mod the_worker_keeps_the_second;
mod vector_search_equals_brute_force;
mod what_comes_back_says_so;
mod what_is_out_of_reach_is_not_given_up;
mod writers_go_on_beside_an_erasure;
mod writers_share_one_sync;
