/* Parser of fields and numbers. It ignores the locale of the process, and reads numbers as Python's float() does. */
#ifndef CUPEL_TEXT_H
#define CUPEL_TEXT_H

#include <float.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "_index.h"

#define PADDING 64 /* bytes after the end of a buffer that functions may read, and ignore */

static const double TENS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                              1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
static const uint64_t INTEGER_TENS[] = {
    1u, 10u, 100u, 1000u, 10000u, 100000u, 1000000u, 10000000u, 100000000u, 1000000000u, 10000000000u,
    100000000000u, 1000000000000u, 10000000000000u, 100000000000000u, 1000000000000000u, 10000000000000000u,
    100000000000000000u, 1000000000000000000u, 10000000000000000000u};

static locale_t plain_locale; /* the locale "C", in which the decimal separator is a point */

/* Return digits / 10^places for 0 < places < 20, rounded once, half to even. A 128-bit division gives a quotient of
 * 63 or 64 bits. Rounding only needs to know whether its remainder is zero. */
static double divided(uint64_t digits, int places) {
    uint64_t tens = INTEGER_TENS[places];
    int up = __builtin_clzll(digits), down = __builtin_clzll(tens);
    u128 numerator = (u128)(digits << up) << 63;
    uint64_t quotient = (uint64_t)(numerator / (tens << down));
    int rest = (u128)quotient * (tens << down) != numerator;
    int extra = 11 - __builtin_clzll(quotient);
    uint64_t kept = quotient >> extra, cut = quotient & ((1ull << extra) - 1), half = 1ull << (extra - 1);
    kept += cut > half || (cut == half && (rest || (kept & 1)));
    int exponent = extra - 63 - up + down; /* between -127 and 2, so no result is subnormal */
    uint64_t bits = (uint64_t)(1023 + exponent) << 52;
    double power;
    memcpy(&power, &bits, 8);
    return (double)kept * power;
}

#define ZEROS 0x3030303030303030u /* eight characters 0 */

static inline int is_digit(uint8_t byte) { return (uint8_t)(byte - '0') < 10; }

/* Return whether all bytes of `digits`, which are characters XOR '0', are below 10. */
static inline int are_digits(uint64_t digits) {
    return !(((digits + 0x7676767676767676u) | digits) & 0x8080808080808080u);
}

/* Return the number of eight digits: combine adjacent digits to pairs, pairs to fours, and fours to eight. */
static inline uint64_t eight_digits(uint64_t digits) {
    digits = (digits * 10 + (digits >> 8)) & 0x00FF00FF00FF00FFu;
    digits = (digits * 100 + (digits >> 16)) & 0x0000FFFF0000FFFFu;
    return (digits * 10000 + (digits >> 32)) & 0xFFFFFFFFu;
}

/* Append the eight bytes at `s` to *digits if all are digits. Return whether they are. */
static inline int append_eight(const uint8_t *s, uint64_t *digits) {
    uint64_t word = word_at(s) ^ ZEROS;
    if (are_digits(word))
        *digits = *digits * 100000000 + eight_digits(word);
    return are_digits(word);
}

/* Return whether text[0:length] is [+-]?(digits[.digits] | .digits)([eE][+-]?digits)?, and set *value to the nearest
 * double. The next byte must not be part of a number; a field is always followed by white space. */
static int number(const uint8_t *text, size_t length, double *value) {
    const uint8_t *s = text, *end = text + length;
    uint64_t digits = 0;
    int used = 0, many = 0, any = 0, negative = length && *text == '-';
    int64_t places = 0, exponent = 0;
    if (s < end && (*s == '-' || *s == '+'))
        text = ++s;
    for (int fraction = 0; s < end; s++) {
        if (end - s >= 8 && used <= 11 && append_eight(s, &digits)) {
            any = 1;
            used += 8; /* counts leading zeros too; more than 19 digits are only slower */
            places += 8 * fraction;
            s += 7;
        } else if (is_digit(*s)) {
            any = 1;
            places += fraction;
            if (used < 19) {
                digits = digits * 10 + (*s - '0');
                used += digits != 0;
            } else
                many = 1;
        } else if (*s == '.' && !fraction) {
            if (s + 1 == end || !is_digit(s[1]))
                return 0;
            fraction = 1;
        } else
            break;
    }
    if (!any)
        return 0;
    if (s < end && (*s | 32) == 'e') {
        int under = s + 1 < end && s[1] == '-';
        s += 1 + (s + 1 < end && (s[1] == '-' || s[1] == '+'));
        if (s == end)
            return 0;
        for (; s < end && is_digit(*s); s++)
            if (exponent < 100000)
                exponent = exponent * 10 + (*s - '0');
        places += under ? exponent : -exponent;
    }
    if (s != end)
        return 0;
    if (many)
        *value = strtod_l((const char *)text, NULL, plain_locale);
    else if (digits == 0 || places == 0)
        *value = (double)digits;
    else if (digits <= 1ull << 53 && places > 0 && places <= 22)
        *value = (double)digits / TENS[places];
    else if (digits <= 1ull << 53 && places < 0 && places >= -22)
        *value = (double)digits * TENS[-places];
    else if (places > 0 && places < 20)
        *value = divided(digits, (int)places);
    else
        *value = strtod_l((const char *)text, NULL, plain_locale);
    if (negative)
        *value = -*value;
    return 1;
}

/* Return whether text[0:length] is a number; fast for one to eight digits, as in almost all ranks.
 * May read up to PADDING bytes after the text. */
static inline int is_number(const uint8_t *text, size_t length) {
    double ignored;
    uint64_t digits = (word_at(text) ^ ZEROS) << (length < 8 ? 64 - 8 * length : 0);
    return (length <= 8 && are_digits(digits)) || number(text, length, &ignored);
}

static int finite_number(const uint8_t *text, size_t length, double *value) {
    return number(text, length, value) && *value >= -DBL_MAX && *value <= DBL_MAX;
}

/* Parse a score into *value. Return whether it is a finite number; fast for decimals with few digits.
 * May read up to PADDING bytes after the text. */
static inline int score(const uint8_t *text, size_t length, double *value) {
    size_t sign = *text == '-', point;
    uint64_t word = word_at(text + sign), other = word ^ 0x2E2E2E2E2E2E2E2Eu; /* a point becomes byte 0 */
    uint64_t points = (other - 0x0101010101010101u) & ~other & 0x8080808080808080u;
    point = points ? (size_t)__builtin_ctzll(points) / 8 : 8;
    size_t places = length - sign - point - 1; /* wraps to a huge number if there is no point */
    if (point == 0 || point == 8 || places == 0 || places > 8)
        return finite_number(text, length, value);
    uint64_t whole = (word ^ ZEROS) << (64 - 8 * point);
    uint64_t part = (word_at(text + sign + point + 1) ^ ZEROS) << (64 - 8 * places);
    if (!are_digits(whole) || !are_digits(part))
        return finite_number(text, length, value);
    *value = (double)(eight_digits(whole) * INTEGER_TENS[places] + eight_digits(part)) / TENS[places];
    *value = sign ? -*value : *value;
    return 1;
}

enum LineKind { UNFINISHED, NOTHING, DATA, WRONG };

typedef struct {
    const uint8_t *start[6], *end[6]; /* topic, anything, document, rank, score, tag */
    const uint8_t *next;
} Fields;

static int is_space(uint8_t byte) { return byte == ' ' || (uint8_t)(byte - 9) < 5; }

/* Return whether s[0:length] is valid UTF-8 without NUL. As in Python, surrogates and overlong forms are invalid. */
static int is_text(const uint8_t *s, size_t length) {
    for (size_t i = 0; i < length;) {
        uint8_t lead = s[i++];
        if (lead == 0)
            return 0;
        if (lead < 0x80)
            continue;
        int more = lead >= 0xC2 && lead < 0xE0 ? 1 : (lead & 0xF0) == 0xE0 ? 2 : lead >= 0xF0 && lead < 0xF5 ? 3 : 0;
        if (!more || length - i < (size_t)more)
            return 0;
        uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        if (s[i] < low || s[i] > high)
            return 0;
        for (int k = 1; k < more; k++)
            if ((s[i + (size_t)k] & 0xC0) != 0x80)
                return 0;
        i += (size_t)more;
    }
    return 1;
}

/* Split any line, byte by byte. It can be blank or a comment, and can contain any white space between fields. */
static enum LineKind slow_line(const uint8_t *line, const uint8_t *end, Fields *fields) {
    const uint8_t *newline = memchr(line, '\n', (size_t)(end - line)), *s = line;
    if (!newline)
        return UNFINISHED;
    fields->next = newline + 1;
    const uint8_t *carriage = memchr(line, '\r', (size_t)(newline - line));
    if (carriage && carriage + 1 != newline)
        return WRONG; /* carriage return without a newline */
    if (!is_text(line, (size_t)(newline - line)))
        return WRONG;
    if (*line == '#')
        return NOTHING;
    for (int field = 0; field < 6; field++) {
        while (s < newline && is_space(*s))
            s++;
        if (s == newline)
            return field ? WRONG : NOTHING;
        fields->start[field] = s;
        while (s < newline && !is_space(*s))
            s++;
        fields->end[field] = s;
    }
    return DATA;
}

#if defined(__SSE2__)
typedef struct {
    uint64_t control, space, newline, high;
} Masks;

static inline Masks masks_of(const uint8_t *line) {
    Masks masks = {0, 0, 0, 0};
    const __m128i space = _mm_set1_epi8(' '), newline = _mm_set1_epi8('\n');
    for (int part = 0; part < 4; part++) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(line + 16 * part));
        __m128i control = _mm_cmpeq_epi8(_mm_max_epu8(bytes, space), space);
        masks.control |= (uint64_t)(uint32_t)_mm_movemask_epi8(control) << (16 * part);
        masks.space |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, space)) << (16 * part);
        masks.newline |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, newline)) << (16 * part);
        masks.high |= (uint64_t)(uint32_t)_mm_movemask_epi8(bytes) << (16 * part);
    }
    return masks;
}

/* Split a line of at most 64 bytes with six ASCII fields and single spaces, as almost all lines of runs are.
 * Return 0 for any other line. Reads up to PADDING bytes after `end`. */
static inline int fast_line(const uint8_t *line, const uint8_t *end, Fields *fields) {
    Masks masks = masks_of(line);
    if (!masks.newline)
        return 0;
    int length = __builtin_ctzll(masks.newline);
    uint64_t below = (1ull << length) - 1, spaces = masks.control & below;
    uint64_t edges = spaces & ((spaces << 1) | 1 | (1ull << length) >> 1);
    if (length >= end - line || spaces != (masks.space & below) || edges || (masks.high & below) || *line == '#')
        return 0;
    fields->start[0] = line;
    for (int field = 0; field < 5; field++, spaces &= spaces - 1) {
        if (!spaces)
            return 0;
        fields->end[field] = line + __builtin_ctzll(spaces);
        fields->start[field + 1] = fields->end[field] + 1;
    }
    fields->end[5] = line + length;
    fields->next = line + length + 1;
    return !spaces;
}
#else
static inline int fast_line(const uint8_t *line, const uint8_t *end, Fields *fields) {
    (void)line, (void)end, (void)fields;
    return 0;
}
#endif

#endif
