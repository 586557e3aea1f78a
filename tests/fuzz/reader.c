/* Fuzz target for the compiled reader of runs, built with the address and undefined-behaviour sanitizers.
 *
 * Each input is read twice, in blocks of different sizes, from buffers of exactly the announced size. The sanitizers
 * find memory errors. This file checks that both readings return the same status and hits, and that the hits are
 * consistent. With clang this is a libFuzzer target; otherwise driver.c replaces libFuzzer.
 */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>

/* Number of allocations that still succeed; negative: all succeed. */
static long allocations_left = -1;

static void *limited(void *memory) {
    if (allocations_left == 0) {
        free(memory);
        return NULL;
    }
    allocations_left -= allocations_left > 0;
    return memory;
}

static void *limited_realloc(void *old, size_t size) {
    if (allocations_left == 0)
        return NULL;
    allocations_left -= allocations_left > 0;
    return realloc(old, size);
}

#define malloc(size) limited(malloc(size))
#define calloc(count, size) limited(calloc(count, size))
#define realloc(old, size) limited_realloc(old, size)

#include "../../libs/measures/cupel_measures/native/_reader.h"

#undef malloc
#undef calloc
#undef realloc

#define CHECK(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "line %d: check failed: %s\n", __LINE__, #condition); \
            abort(); \
        } \
    } while (0)

/* Pools of topics 1, 10, 2 and t; the ids are shorter and longer than the eight bytes that are hashed at a time. */
static const uint8_t NAMES[] = "1102t";
static const int64_t NAME_STARTS[] = {0, 1, 3, 4, 5}, OFFSETS[] = {0, 5, 7, 7, 8};
static const uint8_t BLOB[] = "aabbdoc-1234doc-12345doc-123456789-123456789";
static const int64_t STARTS[] = {0, 1, 3, 4, 12, 21, 43, 44, 44};

static Index open_index(void) {
    static Index index;
    if (index.slots)
        return index;
    index = (Index){.blob = BLOB, .names = NAMES, .starts = STARTS, .name_starts = NAME_STARTS, .offsets = OFFSETS,
                    .topics = 4, .documents = 8, .seed = {0x1234567890abcdefu, 0xfedcba0987654321u}};
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    CHECK(plain_locale && index_open(&index, 44, 5) == READING);
    return index;
}

/* Read `data` in blocks of at most `block` bytes, as the Python module does. */
static enum Status read_in_blocks(Reader *reader, const uint8_t *data, size_t size, size_t block) {
    size_t room = block, kept = 0, taken = 0;
    enum Status status = READING;
    for (int last = 0; !last && !status;) {
        size_t n_read = size - taken < room - kept ? size - taken : room - kept;
        uint8_t *buffer = malloc(room + PADDING + 1); /* new, so that the reader cannot rely on old content */
        static uint8_t *previous = NULL;
        CHECK(buffer);
        if (kept)
            memcpy(buffer, previous, kept);
        free(previous);
        previous = buffer;
        memcpy(buffer + kept, data + taken, n_read);
        taken += n_read, kept += n_read, last = n_read == 0;
        memset(buffer + kept, '\n', PADDING);
        if (last && kept && buffer[kept - 1] != '\n')
            buffer[kept++] = '\n';
        status = reader_feed(reader, buffer, &kept, last);
        if (2 * kept > room)
            room *= 2;
        if (last || status)
            free(previous), previous = NULL;
    }
    return status;
}

static void check_hits(const Index *index, const Joined *joined, int64_t depth) {
    for (int64_t row = 0; row < index->topics; row++) {
        CHECK(joined->retrieved[row] >= FREE && (depth < 0 || joined->retrieved[row] <= depth));
        for (int64_t h = 0, above = 0; h < joined->row_count[row]; h++) {
            Hit hit = joined->hits[joined->row_start[row] + h];
            CHECK(index->offsets[row] <= hit.document && hit.document < index->offsets[row + 1]);
            CHECK(above < hit.rank && hit.rank <= joined->retrieved[row] && hit.last <= joined->retrieved[row]);
            CHECK(1 <= hit.first && hit.first <= hit.rank && hit.rank <= hit.last);
            above = hit.rank;
        }
    }
}

static void check_same(const Joined *a, const Joined *b, int64_t rows) {
    CHECK(a->count == b->count);
    CHECK(!a->count || !memcmp(a->hits, b->hits, a->count * sizeof(Hit)));
    CHECK(!memcmp(a->retrieved, b->retrieved, (size_t)rows * sizeof(int64_t)));
}

static int ascending_bytes(const void *a, const void *b) {
    return (*(const int64_t *)a > *(const int64_t *)b) - (*(const int64_t *)a < *(const int64_t *)b);
}

/* Join a stored ranking whose columns are bytes of the input: mostly ordered, and otherwise harmless. */
static void join_bytes(const Index *index, const uint8_t *data, size_t size, int64_t depth) {
    enum { DOCUMENTS = 12, TOPICS = 3 };
    int64_t starts[DOCUMENTS + 1] = {0}, offsets[TOPICS + 1] = {0}, rows[TOPICS];
    double scores[DOCUMENTS];
    Joined joined = {0};
    if (size < 3 * DOCUMENTS)
        return;
    for (int d = 0; d < DOCUMENTS; d++) {
        starts[d + 1] = data[d] % 45;
        scores[d] = data[DOCUMENTS + d] % 3;
    }
    for (int t = 0; t < TOPICS; t++) {
        offsets[t + 1] = data[2 * DOCUMENTS + t] % (DOCUMENTS + 1);
        rows[t] = data[2 * DOCUMENTS + TOPICS + t] % 6 - 1;
    }
    if (data[size - 1] % 8) {
        starts[DOCUMENTS] = 44, offsets[TOPICS] = DOCUMENTS;
        qsort(starts + 1, DOCUMENTS, sizeof *starts, ascending_bytes);
        qsort(offsets + 1, TOPICS, sizeof *offsets, ascending_bytes);
    }
    Columns columns = {BLOB, 44, rows, offsets, starts, scores, TOPICS, DOCUMENTS, size & 1};
    if (join_columns(&columns, index, &joined, depth) == READING)
        check_hits(index, &joined, depth);
    joined_close(&joined);
}

/* Read with a limited number of allocations: the reader must report the failure, and close without leaks. */
static void read_without_memory(const Index *index, Limits limits, const uint8_t *data, size_t size) {
    Reader reader;
    allocations_left = size % 24;
    if (reader_open(&reader, index, limits, 0, -1) == READING)
        read_in_blocks(&reader, data, size, 4096);
    reader_close(&reader);
    allocations_left = -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const size_t BLOCKS[] = {80, 100, 256, 4096, 1 << 16};
    Index index = open_index();
    if (size < 2)
        return 0;
    int64_t depth = data[0] & 7 ? -1 : data[0] >> 3;
    Limits limits = {data[0] & 64 ? 300 : 70, data[0] & 32 ? 400 : 20, data[1] & 64 ? 100 : 3, data[1] & 32 ? 300 : 9};
    Reader readers[2];
    enum Status status[2];
    for (int i = 0; i < 2; i++) {
        CHECK(reader_open(readers + i, &index, limits, data[1] & 1, depth) == READING);
        status[i] = read_in_blocks(readers + i, data + 2, size - 2, i ? 1 << 17 : BLOCKS[data[1] % 5]);
    }
    CHECK(status[0] == status[1]);
    if (status[0] == READING) {
        check_hits(&index, &readers[0].joined, depth);
        check_same(&readers[0].joined, &readers[1].joined, index.topics);
    }
    reader_close(readers), reader_close(readers + 1);
    read_without_memory(&index, limits, data, size);
    join_bytes(&index, data, size, depth);
    return 0;
}
