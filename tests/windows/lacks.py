"""Tests of the command line that cannot run on Windows, or here under wine: reasons and names."""

LACKS = {
    "names of files and arguments are Unicode": [
        "Names.test_a_key_that_is_no_text_is_refused", "Names.test_damage",
        "Names.test_file_names"],
    "wine itself hangs if a stream is closed": ["Results.test_closed_streams"],
    "a command line has at most 32,767 characters": [
        "Attributes.test_refusals"],
    "a signal ends a program of wine, or is lost while it starts": [
        "Interrupted.*", "Held.*", "Signals.*", "EveryCommand.*", "Answers.test_signals",
        "Large.test_interrupted", "Progress.test_inside_one_chunk", "Progress.test_unknown_total"],
    "wine cannot examine a pipe of Linux": [
        "Follow.test_both", "Follow.test_killed", "Follow.test_time", "Marks.test_named_pipes"],
    "wine draws a terminal of Linux itself": [
        "Large.test_progress", "Large.test_progress_fits_the_terminal",
        "View.test_colours_in_the_terminal", "View.test_grays_of_256_colours", "View.test_terminal"],
    "modes, locks, limits and SIGPIPE of Linux do not exist in wine": [
        "Results.test_access_is_kept_wherever_something_is_replaced",
        "Results.test_permissions_and_links_survive",
        "Results.test_what_is_written_elsewhere_is_not_replaced",
        "Results.test_no_room_for_the_result", "Results.test_closed_pipe",
        "Repair.test_beside_a_writer"],
    "wine follows symbolic links without showing them": [
        "Answers.test_the_list", "Answers.test_links_in_directories", "Answers.test_links_that_appear",
        "Hostile.test_paths_and_requests", "Names.test_what_has_an_arrays_name_and_is_no_file"],
    "wine cannot examine a file that is redirected from outside": [
        "Append.test_raw_from_a_redirected_file", "Marks.test_pipes",
        "Outputs.test_a_result_never_replaces_its_input"],
}


def why(test):
    """Why a test, CLASS.NAME, is skipped; None if it runs."""
    every = test.partition(".")[0] + ".*"
    return next((reason for reason, tests in LACKS.items() if test in tests or every in tests), None)
