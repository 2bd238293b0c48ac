"""The page of the explorer: `document.write_page` joins its parts into one HTML document."""
