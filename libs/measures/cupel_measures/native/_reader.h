/* Reader of a run, which joins it with qrels. It parses untrusted bytes and does not use Python, so tests/fuzz
 * can run it under the address sanitizer.
 *
 * The reader gets the text in blocks and processes it by topic. Most of the time is memory latency. Therefore the
 * documents of a topic are looked up together at the end of the topic, with prefetching. The reader declines a
 * run with any irregularity. The slower reader in Python then reads the run or reports its errors.
 *
 * A file that includes this one must define _GNU_SOURCE first, for strtod_l.
 */
#ifndef CUPEL_READER_H
#define CUPEL_READER_H

#include "_text.h"
#include "_topic.h"

#define MOST_IDLE (1u << 20) /* most bytes of comments and blank lines within the text of a topic */

typedef struct {
    size_t line, lines, topics, depth;
} Limits;

typedef struct {
    const Index *index;
    Topic topic;
    Joined joined;
    Limits limits;
    int single_precision, open; /* open: whether a topic has begun and not ended */
    int64_t depth;
    size_t lines, topics, common;
    size_t idle;                     /* bytes of comments and blank lines since the start of the open topic */
    size_t scanned;                  /* bytes of the buffer that were parsed already */
    size_t name_start, name_length;  /* name of the open topic; name_start is an offset in its text */
    uint8_t *unknown;                /* concatenated names of the topics that the qrels lack */
    size_t unknown_length, unknown_room;
    struct UnknownTopic {
        uint64_t hash;
        size_t start, length;
    } *unknown_slots;
    size_t unknown_count, unknown_size;
} Reader;

static void reader_close(Reader *reader) {
    topic_close(&reader->topic);
    joined_close(&reader->joined);
    free(reader->unknown);
    free(reader->unknown_slots);
    memset(reader, 0, sizeof *reader);
}

static enum Status reader_open(Reader *reader, const Index *index, Limits limits, int single_precision,
                               int64_t depth) {
    memset(reader, 0, sizeof *reader);
    reader->index = index;
    reader->limits = limits;
    reader->single_precision = single_precision;
    reader->depth = depth;
    return joined_open(&reader->joined, index->topics);
}

static void place_unknown(struct UnknownTopic *slots, size_t size, struct UnknownTopic name) {
    size_t at = name.hash & (size - 1);
    while (slots[at].length)
        at = (at + 1) & (size - 1);
    slots[at] = name;
}

static enum Status grow_unknown(Reader *reader) {
    size_t size = reader->unknown_size ? reader->unknown_size * 2 : 64;
    struct UnknownTopic *slots = calloc(size, sizeof *slots);
    if (!slots)
        return NO_MEMORY;
    for (size_t i = 0; i < reader->unknown_size; i++)
        if (reader->unknown_slots[i].length)
            place_unknown(slots, size, reader->unknown_slots[i]);
    free(reader->unknown_slots);
    reader->unknown_slots = slots;
    reader->unknown_size = size;
    return READING;
}

/* Store the name of a topic that the qrels lack. Return DECLINED if it is already stored. */
static enum Status add_unknown(Reader *reader, uint64_t hash, const uint8_t *name, size_t length) {
    if (2 * reader->unknown_count >= reader->unknown_size && grow_unknown(reader))
        return NO_MEMORY;
    for (size_t at = hash & (reader->unknown_size - 1);; at = (at + 1) & (reader->unknown_size - 1)) {
        struct UnknownTopic *slot = reader->unknown_slots + at;
        if (!slot->length)
            break;
        if (slot->hash == hash && slot->length == length && !memcmp(reader->unknown + slot->start, name, length))
            return DECLINED;
    }
    if (!grow((void **)&reader->unknown, &reader->unknown_room, reader->unknown_length + length, 1))
        return NO_MEMORY;
    memcpy(reader->unknown + reader->unknown_length, name, length);
    place_unknown(reader->unknown_slots, reader->unknown_size,
                  (struct UnknownTopic){hash, reader->unknown_length, length});
    reader->unknown_length += length;
    reader->unknown_count++;
    return READING;
}

/* Check and join the open topic, whose text is complete, and close it. Return DECLINED if the topic occurred before. */
static enum Status end_topic(Reader *reader, const uint8_t *text) {
    const uint8_t *name = text + reader->name_start;
    uint64_t hash = hash_of(name, reader->name_length, reader->index->seed);
    int64_t row = row_of(reader->index, hash, name, reader->name_length);
    enum Status status;
    if (++reader->topics > reader->limits.topics || (row != FREE && reader->joined.retrieved[row] != FREE))
        return DECLINED;
    if ((status = find_duplicates(&reader->topic, text)))
        return status;
    if (row == FREE)
        status = add_unknown(reader, hash, name, reader->name_length);
    else {
        status = join_topic(&reader->topic, &reader->joined, reader->index, row, text, reader->depth);
        reader->common++;
    }
    topic_clear(&reader->topic);
    reader->open = 0;
    return status;
}

static inline enum Status add_line(Reader *reader, const Fields *fields, const uint8_t *text) {
    double value;
    const uint8_t *document = fields->start[2];
    size_t length = (size_t)(fields->end[2] - document);
    if (!score(fields->start[4], (size_t)(fields->end[4] - fields->start[4]), &value) ||
        !is_number(fields->start[3], (size_t)(fields->end[3] - fields->start[3])))
        return DECLINED;
    if (reader->topic.count >= reader->limits.depth || (size_t)(document - text) + length > UINT32_MAX)
        return DECLINED;
    if (!topic_room(&reader->topic))
        return NO_MEMORY;
    if (reader->single_precision)
        value = (double)(float)value;
    topic_add(&reader->topic, hash_of(document, length, reader->index->seed), value, (size_t)(document - text),
              length);
    return READING;
}

/* Read the lines of buffer[0:*filled]; PADDING more bytes must be readable. Move the text of the open topic and an
 * incomplete line to the start of the buffer, and set *filled to their length. The last block must end with a
 * newline; it also completes the last topic. */
static enum Status reader_feed(Reader *reader, uint8_t *buffer, size_t *filled, int last) {
    const uint8_t *line = buffer + reader->scanned, *end = buffer + *filled, *text = buffer;
    enum Status status = READING;
    Fields fields;
    while (line < end) {
        enum LineKind kind = fast_line(line, end, &fields) ? DATA : slow_line(line, end, &fields);
        size_t length = (size_t)((kind == UNFINISHED ? end : fields.next - 1) - line);
        if (kind == WRONG || length > reader->limits.line)
            return DECLINED;
        if (kind == UNFINISHED)
            break;
        if (++reader->lines > reader->limits.lines)
            return DECLINED;
        if (kind == DATA) {
            size_t name = (size_t)(fields.end[0] - fields.start[0]);
            if (reader->open && (name != reader->name_length ||
                                 memcmp(fields.start[0], text + reader->name_start, name)) &&
                (status = end_topic(reader, text)))
                return status;
            if (!reader->open) {
                text = line;
                reader->name_start = (size_t)(fields.start[0] - text);
                reader->name_length = name;
                reader->open = 1;
                reader->idle = 0;
            }
            if ((status = add_line(reader, &fields, text)))
                return status;
        } else if (reader->open && (reader->idle += length + 1) > MOST_IDLE)
            return DECLINED;
        line = fields.next;
    }
    if (last && reader->open && (status = end_topic(reader, text)))
        return status;
    const uint8_t *keep = reader->open ? text : line;
    *filled = (size_t)(end - keep);
    reader->scanned = (size_t)(line - keep);
    memmove(buffer, keep, *filled);
    return last && !reader->common ? DECLINED : READING;
}

#endif
