//! The blocks of a Markdown text, as `CommonMark` defines them.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Where a block begins.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// Its first byte.
    pub start: usize,
    /// 1 to 6 for a heading, 0 for another block.
    pub level: u8,
    /// The text of a heading, without marks.
    pub title: String,
}

/// The blocks of a Markdown text, in its order: headings, paragraphs, items of lists, tables, code.
///
/// A block that stands in another one, as a heading in a quotation does, counts as a part of it; but
/// the items of an outermost list are blocks of their own. A block goes up to the next one.
pub fn markdown_blocks(text: &str) -> Vec<Block> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let mut blocks: Vec<Block> = Vec::new();
    let mut depth = 0_usize;
    for (event, place) in Parser::new_ext(text, options).into_offset_iter() {
        let in_heading = depth > 0 && blocks.last().is_some_and(|block| block.level > 0);
        match event {
            Event::Start(Tag::List(_)) | Event::End(TagEnd::List(_)) if depth == 0 => {}
            Event::End(_) => depth -= 1,
            Event::Text(title) | Event::Code(title) if in_heading => {
                if let Some(heading) = blocks.last_mut() {
                    heading.title.push_str(&title);
                }
            }
            Event::SoftBreak | Event::HardBreak if in_heading => {
                if let Some(heading) = blocks.last_mut() {
                    heading.title.push(' ');
                }
            }
            event => {
                let level = match event {
                    Event::Start(Tag::Heading { level, .. }) => level as u8,
                    _ => 0,
                };
                if depth == 0 {
                    blocks.push(Block { start: place.start, level, title: String::new() });
                }
                depth += usize::from(matches!(event, Event::Start(_)));
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<(usize, u8, String)> {
        markdown_blocks(text).into_iter().map(|one| (one.start, one.level, one.title)).collect()
    }

    #[test]
    fn blocks_are_headings_paragraphs_items_and_code() {
        let text = "# A *b* `c`\n\ntext\n- x\n  - y\n- z\n```\n# no\n```\nD\n---\n";
        let starts = shown(text);
        let expected =
            [(0, 1, "A b c"), (13, 0, ""), (18, 0, ""), (28, 0, ""), (32, 0, ""), (45, 2, "D")];
        assert_eq!(starts, expected.map(|(at, level, title)| (at, level, title.to_owned())));
    }

    #[test]
    fn a_text_without_blocks_has_none() {
        assert_eq!(shown(""), []);
        assert_eq!(shown("\n \n[a]: /url\n"), []);
    }
}
