/* A small fuzzer for compilers without libFuzzer: it changes inputs and keeps those that reach new code.
 *
 * The target is compiled with -fsanitize-coverage=trace-pc, this file without. An input that fails is left in the
 * file `crash`.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void __sanitizer_set_death_callback(void (*callback)(void));

#define LONGEST 8192
#define KEPT 8192
#define MAP (1 << 13)

typedef struct {
    uint8_t *data;
    size_t size;
} Input;

static Input corpus[KEPT];
static size_t kept_inputs;
static uint8_t reached[MAP], now[MAP]; /* how often each edge was taken: bits of counts so far; this time */
static uint64_t state;
static uint8_t data[LONGEST];
static size_t size;

static void leave_crash(void) {
    FILE *file = fopen("crash", "wb");
    if (file) {
        fwrite(data, 1, size, file);
        fclose(file);
    }
}

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) {
    static uintptr_t before;
    uintptr_t here = (uintptr_t)__builtin_return_address(0);
    size_t edge = ((here >> 1) ^ (before << 3)) % MAP;
    now[edge] += now[edge] < 255;
    before = here;
}

/* Whether an edge was taken for the first time, or twice, or four times as often as ever. */
static int reached_more(void) {
    int more = 0;
    for (size_t edge = 0; edge < MAP; edge++)
        for (uint8_t bit = 128; bit; bit >>= 1)
            if (now[edge] >= bit) {
                more |= !(reached[edge] & bit);
                reached[edge] |= bit;
                break;
            }
    memset(now, 0, sizeof now);
    return more;
}

static uint64_t any(uint64_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (state * 0x2545F4914F6CDD1Du >> 16) % below;
}

static void keep(const uint8_t *bytes, size_t length) {
    size_t place = kept_inputs < KEPT ? kept_inputs++ : any(KEPT);
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
#define MANY(array) (sizeof(array) / sizeof *(array))

/* Put a piece anywhere into the input. */
static void put(const uint8_t *piece, size_t length) {
    size_t at = any(size + 1);
    if (length > LONGEST - size)
        length = LONGEST - size;
    memmove(data + at + length, data + at, size - at);
    memcpy(data + at, piece, length);
    size += length;
}

/* Add plain lines of a run at the end: topics, documents and scores that often meet. */
static void put_lines(void) {
    static const char *const TOPICS[] = {"1", "1", "1", "10", "2", "t", "9"};
    static const char *const DOCUMENTS[] = {"a", "ab", "b", "doc-1234", "doc-12345", "doc-123456789-123456789"};
    char line[128];
    const char *topic = TOPICS[any(MANY(TOPICS))];
    int many_topics = any(8) == 0;
    for (uint64_t lines = 1 + any(60); lines; lines--) {
        const char *document = DOCUMENTS[any(MANY(DOCUMENTS))];
        unsigned other = any(3) ? (unsigned)any(1000) : 0, score = (unsigned)any(any(3) ? 4 : 1000);
        int length = many_topics ? snprintf(line, sizeof line, "q%u Q0 %s 1 %u t\n", (unsigned)lines, document, score)
                     : other     ? snprintf(line, sizeof line, "%s Q0 %s%u 1 %u t\n", topic, document, other, score)
                                 : snprintf(line, sizeof line, "%s Q0 %s 1 %u.5 t\n", topic, document, score);
        if ((size_t)length <= LONGEST - size) {
            memcpy(data + size, line, (size_t)length);
            size += (size_t)length;
        }
    }
}

static void mutate(void) {
    uint8_t piece[LONGEST];
    size_t at = size ? any(size) : 0, length = any((size - at < 64 ? size - at : 64) + 1);
    const Input *other = corpus + any(kept_inputs);
    const char *word = WORDS[any(MANY(WORDS))];
    switch (any(9)) {
    case 0: /* another bit */
        data[at] ^= (uint8_t)(1u << any(8));
        break;
    case 1: /* another byte */
        data[at] = (uint8_t)any(256);
        break;
    case 2: /* a piece less */
        memmove(data + at, data + at + length, size - at - length);
        size -= length;
        break;
    case 3: /* a piece twice */
        memcpy(piece, data + at, length);
        put(piece, length);
        break;
    case 4: /* the end of another input */
        at = any(other->size + 1);
        memcpy(piece, other->data + at, other->size - at);
        put(piece, other->size - at);
        break;
    case 5:
        put_lines();
        break;
    default: /* a word */
        put((const uint8_t *)word, strlen(word));
    }
}

/* driver SECONDS [SEED] */
int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 10;
    unsigned long long tried = 0;
    time_t begin = time(NULL);
    state = (count > 2 ? strtoull(arguments[2], NULL, 10) : (uint64_t)begin) * 2 + 1;
    __sanitizer_set_death_callback(leave_crash);
    for (size_t i = 0; i < MANY(WORDS); i++)
        keep((const uint8_t *)WORDS[i], strlen(WORDS[i]));
    for (; difftime(time(NULL), begin) < seconds; tried++) {
        const Input *input = corpus + any(kept_inputs);
        size = input->size;
        memcpy(data, input->data, size);
        for (uint64_t changes = 1 + any(8); changes; changes--)
            mutate();
        LLVMFuzzerTestOneInput(data, size);
        if (reached_more())
            keep(data, size);
    }
    printf("%llu inputs in %.0f s, %zu kept because they reached new code: no fault\n", tried, seconds, kept_inputs);
    for (size_t i = 0; i < kept_inputs; i++)
        free(corpus[i].data);
    return 0;
}
