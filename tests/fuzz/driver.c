/* A small coverage-guided fuzzer for compilers without libFuzzer.
 *
 * It mutates inputs and keeps those that reach new code. The target is compiled with -fsanitize-coverage=trace-pc, this
 * file without. A failing input is written to the file `crash`.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_set_death_callback(void (*callback)(void));

#define MAX_SIZE 8192
#define MAX_INPUTS 8192
#define MAP_SIZE (1 << 13)

typedef struct {
    uint8_t *data;
    size_t size;
} Input;

static Input corpus[MAX_INPUTS];
static size_t n_inputs;
static uint8_t seen[MAP_SIZE], counts[MAP_SIZE]; /* bits of the counts of each edge in all runs, and its count in this run */
static uint64_t state;
static uint8_t data[MAX_SIZE];
static size_t size;

static void write_crash(void) {
    FILE *file = fopen("crash", "wb");
    if (file) {
        fwrite(data, 1, size, file);
        fclose(file);
    }
}

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
    static uintptr_t previous;
    uintptr_t current = (uintptr_t)__builtin_return_address(0);
    size_t edge = ((current >> 1) ^ (previous << 3)) % MAP_SIZE;
    counts[edge] += counts[edge] < 255;
    previous = current;
}

/* Return whether the count of an edge reached a new power of two, and clear the counts. */
static int has_new_coverage(void) {
    int is_new = 0;
    for (size_t edge = 0; edge < MAP_SIZE; edge++)
        for (uint8_t bit = 128; bit; bit >>= 1)
            if (counts[edge] >= bit) {
                is_new |= !(seen[edge] & bit);
                seen[edge] |= bit;
                break;
            }
    memset(counts, 0, sizeof counts);
    return is_new;
}

/* Return a random number from 0 to below - 1 (xorshift64*). */
static uint64_t random_below(uint64_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state * 0x2545F4914F6CDD1Du >> 16) % below;
}

/* Add an input to the corpus; replace a random one if the corpus is full. */
static void add_input(const uint8_t *bytes, size_t length) {
    size_t place = n_inputs < MAX_INPUTS ? n_inputs++ : random_below(MAX_INPUTS);
    free(corpus[place].data);
    corpus[place].data = malloc(length ? length : 1);
    if (!corpus[place].data)
        abort();
    memcpy(corpus[place].data, bytes, length);
    corpus[place].size = length;
}

static const char *const WORDS[] = {
    "1 Q0 a 1 2.5 tag\n", "10 Q0 doc-1234 1 3 t\n", "2 Q0 b 7 1e-3 t\n", "t Q0 ab 0 0.1234567890123456789 x y\n", "9 Q0 z 1 1 t\n",
    "1 Q0 doc-12345 2 2.5 tag\n", "1 Q0 doc-123456789-123456789 3 2.5 tag\r\n", "#", "# c\n", "\n", "\r\n", "\t", "  ", " ", "\v", "nan",
    "1e", "1.", ".5", "-", "+", "e999", "12345678901234567890123", "9007199254740993", "\xef\xbb\xbf", "\xc3\xa9", "\xed\xa0\x80",
    "\xf4\x90\x80\x80", "\xe2\x82", "0", "-0.0", "2.5", "1",
};
#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* Insert a piece at a random position of the input. */
static void insert(const uint8_t *piece, size_t length) {
    size_t at = random_below(size + 1);
    if (length > MAX_SIZE - size)
        length = MAX_SIZE - size;
    memmove(data + at + length, data + at, size - at);
    memcpy(data + at, piece, length);
    size += length;
}

/* Append valid lines of a run, with few distinct topics, documents and scores so that they often repeat. */
static void append_lines(void) {
    static const char *const TOPICS[] = {"1", "1", "1", "10", "2", "t", "9"};
    static const char *const DOCUMENTS[] = {"a", "ab", "b", "doc-1234", "doc-12345", "doc-123456789-123456789"};
    char line[128];
    const char *topic = TOPICS[random_below(LENGTH(TOPICS))];
    int many_topics = random_below(8) == 0;
    for (uint64_t lines = 1 + random_below(60); lines; lines--) {
        const char *document = DOCUMENTS[random_below(LENGTH(DOCUMENTS))];
        unsigned other = random_below(3) ? (unsigned)random_below(1000) : 0, score = (unsigned)random_below(random_below(3) ? 4 : 1000);
        int length = many_topics ? snprintf(line, sizeof line, "q%u Q0 %s 1 %u t\n", (unsigned)lines, document, score)
                     : other     ? snprintf(line, sizeof line, "%s Q0 %s%u 1 %u t\n", topic, document, other, score)
                                 : snprintf(line, sizeof line, "%s Q0 %s 1 %u.5 t\n", topic, document, score);
        if ((size_t)length <= MAX_SIZE - size) {
            memcpy(data + size, line, (size_t)length);
            size += (size_t)length;
        }
    }
}

static void mutate(void) {
    uint8_t piece[MAX_SIZE];
    size_t at = size ? random_below(size) : 0, length = random_below((size - at < 64 ? size - at : 64) + 1);
    const Input *other = corpus + random_below(n_inputs);
    const char *word = WORDS[random_below(LENGTH(WORDS))];
    switch (random_below(9)) {
    case 0: /* flip a bit */
        data[at] ^= (uint8_t)(1u << random_below(8));
        break;
    case 1: /* change a byte */
        data[at] = (uint8_t)random_below(256);
        break;
    case 2: /* delete a piece */
        memmove(data + at, data + at + length, size - at - length);
        size -= length;
        break;
    case 3: /* copy a piece */
        memcpy(piece, data + at, length);
        insert(piece, length);
        break;
    case 4: /* insert the end of another input */
        at = random_below(other->size + 1);
        memcpy(piece, other->data + at, other->size - at);
        insert(piece, other->size - at);
        break;
    case 5:
        append_lines();
        break;
    default: /* insert a word */
        insert((const uint8_t *)word, strlen(word));
    }
}

/* Usage: driver [SECONDS] [SEED] */
int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 10;
    unsigned long long n_runs = 0;
    time_t begin = time(NULL);
    state = (count > 2 ? strtoull(arguments[2], NULL, 10) : (uint64_t)begin) * 2 + 1;
    __sanitizer_set_death_callback(write_crash);
    for (size_t i = 0; i < LENGTH(WORDS); i++)
        add_input((const uint8_t *)WORDS[i], strlen(WORDS[i]));
    for (; difftime(time(NULL), begin) < seconds; n_runs++) {
        const Input *input = corpus + random_below(n_inputs);
        size = input->size;
        memcpy(data, input->data, size);
        for (uint64_t changes = 1 + random_below(8); changes; changes--)
            mutate();
        LLVMFuzzerTestOneInput(data, size);
        if (has_new_coverage())
            add_input(data, size);
    }
    printf("%llu inputs in %.0f s, %zu of them reached new code: no fault\n", n_runs, seconds, n_inputs);
    for (size_t i = 0; i < n_inputs; i++)
        free(corpus[i].data);
    return 0;
}
