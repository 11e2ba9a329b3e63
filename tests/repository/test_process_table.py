"""The table of docs/samplers.md is what runs."""

import process_table


def test_the_page_is_up_to_date() -> None:
    assert process_table.main() == 0
