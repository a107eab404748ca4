"""Text replacement: exact match first, then matches up to whitespace and typography.

    engine           replace_text: match strategies in order of tolerance; is it applied already?
    needle_variants  the old text as sent, unescaped, without pasted line numbers
    source_lines     a text as lines; indentation; character folding
    match            matching regions, the nearest other region, new text adapted to its region
    errors           errors with the nearest region or the candidates

Words, numbers, operators and the number of lines are never ignored in a comparison. Parts that old
and new text have in common stay as the file has them, byte for byte.
"""
