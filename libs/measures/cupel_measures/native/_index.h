/* Seeded hashes, and the lookup tables of the qrels: one of topics, and one of documents for each topic. */
#ifndef CUPEL_INDEX_H
#define CUPEL_INDEX_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__SIZEOF_INT128__) || !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the optional extension requires 128-bit integers and a little-endian processor; without it, numpy is used"
#endif

#define FREE (-1)

enum Status { READING = 0, DECLINED = 1, NO_MEMORY = 2 };

typedef unsigned __int128 u128;

typedef struct {
    uint32_t tag;    /* the upper half of the document's hash */
    int32_t document; /* index into the qrels' documents, or FREE */
} Slot;

/* Read-only view of the qrels, with a lookup table of documents for each topic and one of topic names. */
typedef struct {
    const uint8_t *blob, *names;
    const int64_t *starts, *name_starts, *offsets; /* lengths: documents + 1, topics + 1, topics + 1 */
    int64_t topics, documents;
    uint64_t seed[2];
    Slot *slots, *name_slots;
    int64_t *first_slot; /* length: topics + 1; the size of each table is a power of two */
    uint64_t name_mask;
} Index;

static inline uint64_t word_at(const uint8_t *s) {
    uint64_t word;
    memcpy(&word, s, 8);
    return word;
}

static inline uint64_t mixed(uint64_t a, uint64_t b) {
    u128 product = (u128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Return a hash of s[0:length]. The random seed prevents a hostile file from causing many collisions. */
static inline uint64_t hash_of(const uint8_t *s, size_t length, const uint64_t seed[2]) {
    uint64_t hash = seed[0] ^ (length * 0x9E3779B97F4A7C15u), tail = 0;
    size_t left = length;
    for (; left >= 8; left -= 8, s += 8)
        hash = mixed(word_at(s) ^ seed[1], hash ^ 0xA0761D6478BD642Fu);
    if (left && length >= 8)
        tail = word_at(s + left - 8) >> (8 * (8 - left));
    else
        for (size_t i = 0; i < left; i++)
            tail |= (uint64_t)s[i] << (8 * i);
    return mixed(tail ^ seed[1] ^ 0xE7037ED1A0B428DBu, hash ^ seed[0]);
}

/* Grow `*array` to at least `wanted` entries of `size` bytes, by doubling. Return 0 if there is not enough memory. */
static int grow(void **array, size_t *room, size_t wanted, size_t size) {
    size_t more = *room ? *room : 64;
    if (wanted <= *room)
        return 1;
    while (more < wanted) {
        if (more > SIZE_MAX / 2)
            return 0;
        more *= 2;
    }
    if (more > SIZE_MAX / size)
        return 0;
    void *moved = realloc(*array, more * size);
    if (!moved)
        return 0;
    *array = moved;
    *room = more;
    return 1;
}

static void index_close(Index *index) {
    free(index->slots);
    free(index->name_slots);
    free(index->first_slot);
    memset(index, 0, sizeof *index);
}

static uint64_t table_size(int64_t count) {
    uint64_t size = 2;
    while (size < 2 * (uint64_t)count)
        size *= 2;
    return size;
}

static void insert(Slot *slots, uint64_t mask, uint64_t hash, int64_t document) {
    uint64_t at = hash & mask;
    while (slots[at].document != FREE)
        at = (at + 1) & mask;
    slots[at].tag = (uint32_t)(hash >> 32);
    slots[at].document = (int32_t)document;
}

static int ascending(const int64_t *values, int64_t count, int64_t last) {
    if (values[0] != 0 || values[count] != last)
        return 0;
    for (int64_t i = 0; i < count; i++)
        if (values[i] > values[i + 1])
            return 0;
    return 1;
}

/* Build the tables of `index`, whose views, counts and seed must be set. Tables are at most half full. */
static enum Status index_open(Index *index, int64_t blob_length, int64_t names_length) {
    if (index->documents >= INT32_MAX || index->topics >= INT32_MAX ||
        !ascending(index->starts, index->documents, blob_length) ||
        !ascending(index->name_starts, index->topics, names_length) ||
        !ascending(index->offsets, index->topics, index->documents))
        return DECLINED;
    index->first_slot = malloc(((size_t)index->topics + 1) * sizeof *index->first_slot);
    if (!index->first_slot)
        return NO_MEMORY;
    index->first_slot[0] = 0;
    for (int64_t t = 0; t < index->topics; t++)
        index->first_slot[t + 1] =
            index->first_slot[t] + (int64_t)table_size(index->offsets[t + 1] - index->offsets[t]);
    uint64_t names = table_size(index->topics), slots = (uint64_t)index->first_slot[index->topics];
    index->name_mask = names - 1;
    index->slots = malloc((slots ? slots : 1) * sizeof(Slot));
    index->name_slots = malloc(names * sizeof(Slot));
    if (!index->slots || !index->name_slots)
        return NO_MEMORY;
    memset(index->slots, 0xFF, slots * sizeof(Slot)); /* FREE in every slot */
    memset(index->name_slots, 0xFF, names * sizeof(Slot));
    for (int64_t t = 0; t < index->topics; t++) {
        const int64_t *name = index->name_starts + t;
        insert(index->name_slots, index->name_mask,
               hash_of(index->names + name[0], (size_t)(name[1] - name[0]), index->seed), t);
        uint64_t mask = (uint64_t)(index->first_slot[t + 1] - index->first_slot[t]) - 1;
        for (int64_t d = index->offsets[t]; d < index->offsets[t + 1]; d++) {
            size_t length = (size_t)(index->starts[d + 1] - index->starts[d]);
            insert(index->slots + index->first_slot[t], mask,
                   hash_of(index->blob + index->starts[d], length, index->seed), d);
        }
    }
    return READING;
}

static int same(const uint8_t *id, size_t length, const uint8_t *blob, const int64_t *start) {
    return (size_t)(start[1] - start[0]) == length && !memcmp(id, blob + start[0], length);
}

/* Return the index of the topic `name`, or FREE if the qrels lack it. */
static int64_t row_of(const Index *index, uint64_t hash, const uint8_t *name, size_t length) {
    for (uint64_t at = hash & index->name_mask;; at = (at + 1) & index->name_mask) {
        Slot slot = index->name_slots[at];
        if (slot.document == FREE)
            return FREE;
        if (slot.tag == (uint32_t)(hash >> 32) &&
            same(name, length, index->names, index->name_starts + slot.document))
            return slot.document;
    }
}

#endif
