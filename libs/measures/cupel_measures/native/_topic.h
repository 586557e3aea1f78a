/* The documents of one topic: check for duplicates, lookup in the pool, ordering, and conversion to hits. */
#ifndef CUPEL_TOPIC_H
#define CUPEL_TOPIC_H

#include "_index.h"

#define AHEAD 24 /* number of documents between a prefetch and its use */

typedef struct {
    uint64_t hash;
    double score;
    uint32_t start, length; /* the document's id, as an offset in the text of the topic */
} Line;

typedef struct {
    int32_t document, rank, first, last;
} Hit;

typedef struct {
    double score;
    const uint8_t *id;
    uint32_t length, line;
} Entry;

typedef struct {
    int32_t line, document;
    uint64_t slot;
} Candidate;

/* The documents of one topic, and arrays for processing them. All arrays except `seen` have `room` entries. */
typedef struct {
    Line *lines;
    Entry *entries;
    Candidate *candidates;
    int32_t *hit; /* by line: index of its document in the qrels, or FREE */
    size_t count, room;
    int rising, equal; /* whether a score is above, or equal to, the previous one */
    uint32_t *seen;    /* hash table of lines (open addressing), to find duplicates */
    size_t seen_room;
} Topic;

/* The joined run. Row r has the row_count[r] hits from hits[row_start[r]]. */
typedef struct {
    Hit *hits;
    size_t count, room;
    int64_t *row_start, *row_count, *retrieved; /* retrieved is FREE until the topic is joined */
} Joined;

static void topic_close(Topic *topic) {
    free(topic->lines);
    free(topic->entries);
    free(topic->candidates);
    free(topic->hit);
    free(topic->seen);
}

/* Make room for one more line. Return 0 if there is not enough memory. */
static int topic_room(Topic *topic) {
    size_t lines = topic->room, entries = topic->room, candidates = topic->room, hit = topic->room;
    size_t wanted = topic->count + 1;
    if (wanted <= topic->room)
        return 1;
    if (!grow((void **)&topic->lines, &lines, wanted, sizeof(Line)) ||
        !grow((void **)&topic->entries, &entries, wanted, sizeof(Entry)) ||
        !grow((void **)&topic->candidates, &candidates, wanted, sizeof(Candidate)) ||
        !grow((void **)&topic->hit, &hit, wanted, sizeof(int32_t)))
        return 0;
    topic->room = lines;
    return 1;
}

static inline void topic_add(Topic *topic, uint64_t hash, double score, size_t start, size_t length) {
    if (topic->count) {
        double above = topic->lines[topic->count - 1].score;
        topic->rising |= score > above;
        topic->equal |= score == above;
    }
    topic->lines[topic->count++] = (Line){hash, score, (uint32_t)start, (uint32_t)length};
}

static void topic_clear(Topic *topic) {
    topic->count = 0;
    topic->rising = topic->equal = 0;
}

static enum Status find_duplicates(Topic *topic, const uint8_t *text) {
    size_t size = table_size((int64_t)topic->count), mask = size - 1;
    if (!grow((void **)&topic->seen, &topic->seen_room, size, sizeof *topic->seen))
        return NO_MEMORY;
    memset(topic->seen, 0xFF, size * sizeof *topic->seen);
    for (size_t i = 0; i < topic->count; i++) {
        const Line *line = topic->lines + i;
        size_t at = line->hash & mask;
        for (; topic->seen[at] != UINT32_MAX; at = (at + 1) & mask) {
            const Line *other = topic->lines + topic->seen[at];
            if (other->hash == line->hash && other->length == line->length &&
                !memcmp(text + other->start, text + line->start, line->length))
                return DECLINED;
        }
        topic->seen[at] = (uint32_t)i;
    }
    return READING;
}

/* Find the documents of the topic in the pool of `row`. Store the hits in topic->candidates and return their number.
 * Look up all slots first, then compare the ids of the candidates, so that many memory accesses overlap. */
static size_t look_up(Topic *topic, const Index *index, int64_t row, const uint8_t *text) {
    const Slot *slots = index->slots + index->first_slot[row];
    uint64_t mask = (uint64_t)(index->first_slot[row + 1] - index->first_slot[row]) - 1;
    size_t found = 0, hits = 0;
    for (size_t i = 0; i < topic->count; i++) {
        if (i + AHEAD < topic->count)
            __builtin_prefetch(slots + (topic->lines[i + AHEAD].hash & mask));
        uint64_t hash = topic->lines[i].hash, at = hash & mask;
        while (slots[at].document != FREE && slots[at].tag != (uint32_t)(hash >> 32))
            at = (at + 1) & mask;
        if (slots[at].document != FREE) {
            __builtin_prefetch(index->starts + slots[at].document);
            topic->candidates[found++] = (Candidate){(int32_t)i, slots[at].document, at};
        }
    }
    for (size_t c = 0; c < found; c++) {
        if (c + AHEAD < found)
            __builtin_prefetch(index->blob + index->starts[topic->candidates[c + AHEAD].document]);
        Candidate candidate = topic->candidates[c];
        const Line *line = topic->lines + candidate.line;
        const uint8_t *id = text + line->start;
        uint64_t at = candidate.slot;
        while (slots[at].document != FREE &&
               !same(id, line->length, index->blob, index->starts + slots[at].document))
            at = (at + 1) & mask;
        if (slots[at].document != FREE) {
            candidate.document = slots[at].document;
            topic->candidates[hits++] = candidate;
        }
    }
    return hits;
}

static int id_descending(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    int order = memcmp(y->id, x->id, x->length < y->length ? x->length : y->length);
    return order ? order : (x->length < y->length) - (x->length > y->length);
}

static int score_descending(const void *a, const void *b) {
    const Entry *x = a, *y = b;
    return x->score > y->score ? -1 : x->score < y->score ? 1 : id_descending(a, b);
}

static void fill_entries(Topic *topic, const uint8_t *text, size_t from, size_t to) {
    for (size_t i = from; i < to; i++) {
        const Line *line = topic->lines + i;
        topic->entries[i] = (Entry){line->score, text + line->start, line->length, (uint32_t)i};
    }
}

/* Append the hits of entries[from:to], which are sorted and have equal scores, down to `depth`. */
static void emit_group(const Topic *topic, Joined *joined, size_t from, size_t to, size_t depth) {
    size_t last = to < depth ? to : depth;
    for (size_t i = from; i < last; i++) {
        int32_t document = topic->hit[topic->entries[i].line];
        if (document != FREE)
            joined->hits[joined->count++] = (Hit){document, (int32_t)i + 1, (int32_t)from + 1, (int32_t)last};
    }
}

/* Append the hits of a topic whose scores never rise. Sort only groups of equal scores that contain a hit. */
static void emit_falling(Topic *topic, Joined *joined, const uint8_t *text, size_t hits, size_t depth) {
    size_t done = 0; /* all lines before this one are processed */
    for (size_t h = 0; h < hits; h++) {
        size_t from = (size_t)topic->candidates[h].line, to = from + 1;
        double score = topic->lines[from].score;
        if (from < done)
            continue;
        while (from > done && topic->lines[from - 1].score == score)
            from--;
        while (to < topic->count && topic->lines[to].score == score)
            to++;
        fill_entries(topic, text, from, to);
        if (to - from > 1)
            qsort(topic->entries + from, to - from, sizeof(Entry), id_descending);
        emit_group(topic, joined, from, to, depth);
        done = to;
    }
}

static void emit_sorted(Topic *topic, Joined *joined, const uint8_t *text, size_t depth) {
    fill_entries(topic, text, 0, topic->count);
    qsort(topic->entries, topic->count, sizeof(Entry), score_descending);
    for (size_t from = 0, to; from < topic->count; from = to) {
        for (to = from + 1; to < topic->count && topic->entries[to].score == topic->entries[from].score;)
            to++;
        emit_group(topic, joined, from, to, depth);
    }
}

/* Join the documents of the topic, whose ids are in `text`, with the pool of `row`.
 * cut: the depth of rankings; negative for no limit. */
static enum Status join_topic(Topic *topic, Joined *joined, const Index *index, int64_t row,
                              const uint8_t *text, int64_t cut) {
    size_t depth = cut < 0 ? SIZE_MAX : (size_t)cut;
    size_t hits = look_up(topic, index, row, text);
    if (!grow((void **)&joined->hits, &joined->room, joined->count + hits, sizeof(Hit)))
        return NO_MEMORY;
    joined->row_start[row] = (int64_t)joined->count;
    joined->retrieved[row] = (int64_t)(topic->count < depth ? topic->count : depth);
    if (topic->rising || topic->equal) {
        memset(topic->hit, 0xFF, topic->count * sizeof *topic->hit);
        for (size_t h = 0; h < hits; h++)
            topic->hit[topic->candidates[h].line] = topic->candidates[h].document;
        if (topic->rising)
            emit_sorted(topic, joined, text, depth);
        else
            emit_falling(topic, joined, text, hits, depth);
    } else
        for (size_t h = 0; h < hits && (size_t)topic->candidates[h].line < depth; h++) {
            int32_t rank = topic->candidates[h].line + 1;
            joined->hits[joined->count++] = (Hit){topic->candidates[h].document, rank, rank, rank};
        }
    joined->row_count[row] = (int64_t)joined->count - joined->row_start[row];
    return READING;
}

static void joined_close(Joined *joined) {
    free(joined->hits);
    free(joined->row_start);
    free(joined->row_count);
    free(joined->retrieved);
}

static enum Status joined_open(Joined *joined, int64_t rows) {
    size_t bytes = ((size_t)rows + 1) * sizeof(int64_t);
    joined->row_start = calloc(1, bytes);
    joined->row_count = calloc(1, bytes);
    joined->retrieved = malloc(bytes);
    if (!joined->row_start || !joined->row_count || !joined->retrieved)
        return NO_MEMORY;
    memset(joined->retrieved, 0xFF, bytes); /* FREE in every row */
    return READING;
}

/* A stored ranking with concatenated ids. rows: the row of each topic in the qrels, negative if they lack it. */
typedef struct {
    const uint8_t *blob;
    int64_t blob_length;
    const int64_t *rows, *offsets, *starts; /* lengths: topics, topics + 1, documents + 1 */
    const double *scores;
    int64_t topics, documents;
    int single_precision;
} Columns;

/* Replace the documents of `topic` by those of topic t. Its text begins with the id of its first document. */
static enum Status load_topic(Topic *topic, const Columns *columns, int64_t t, const uint64_t seed[2]) {
    const int64_t *starts = columns->starts;
    int64_t first = columns->offsets[t];
    topic_clear(topic);
    for (int64_t d = first; d < columns->offsets[t + 1]; d++) {
        double score = columns->single_precision ? (double)(float)columns->scores[d] : columns->scores[d];
        size_t length = (size_t)(starts[d + 1] - starts[d]), start = (size_t)(starts[d] - starts[first]);
        if (start + length > UINT32_MAX || topic->count >= INT32_MAX)
            return DECLINED;
        if (!topic_room(topic))
            return NO_MEMORY;
        topic_add(topic, hash_of(columns->blob + starts[d], length, seed), score, start, length);
    }
    return READING;
}

static enum Status join_columns(const Columns *columns, const Index *index, Joined *joined, int64_t depth) {
    Topic topic;
    enum Status status = joined_open(joined, index->topics);
    memset(&topic, 0, sizeof topic);
    if (!ascending(columns->starts, columns->documents, columns->blob_length) ||
        !ascending(columns->offsets, columns->topics, columns->documents))
        return DECLINED;
    for (int64_t t = 0; !status && t < columns->topics; t++) {
        int64_t row = columns->rows[t];
        if (row < 0)
            continue;
        if (row >= index->topics || joined->retrieved[row] != FREE)
            status = DECLINED;
        else if (!(status = load_topic(&topic, columns, t, index->seed)))
            status = join_topic(&topic, joined, index, row,
                                columns->blob + columns->starts[columns->offsets[t]], depth);
    }
    topic_close(&topic);
    return status;
}

#endif
