/* Compiled version of the slow part of inputs/table_runs.py: rank the documents of a dictionary of scores. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A retrieved document. */
typedef struct {
    PyObject *id;
    uint32_t pooled; /* index in the pool plus 1, or 0 */
} Retrieved;

/* A key that descends with the score, and the place of the document in the table. */
typedef struct {
    uint64_t key;
    uint32_t place;
} Key;

typedef struct {
    Retrieved *documents;
    Key *keys, *spare;
    Py_ssize_t number, hits;
    int bytes; /* of a key */
} Topic;

/* Convert a number. Return whether it is an int or a float other than NaN. */
static int number_of(PyObject *object, double *number) {
    if (PyFloat_Check(object)) {
        *number = PyFloat_AS_DOUBLE(object);
        return *number == *number;
    }
    if (!PyLong_Check(object))
        return 0;
    *number = PyLong_AsDouble(object);
    if (*number == -1.0 && PyErr_Occurred()) {
        PyErr_Clear(); /* too large */
        return 0;
    }
    return 1;
}

/* has_scores(table): see _tables.pyi. */
static PyObject *has_scores(PyObject *self, PyObject *table) {
    (void)self;
    if (!PyDict_Check(table))
        Py_RETURN_FALSE;
    PyObject *id, *score;
    Py_ssize_t place = 0;
    double number;
    while (PyDict_Next(table, &place, &id, &score))
        if (!PyUnicode_CheckExact(id) || !number_of(score, &number))
            Py_RETURN_FALSE;
    Py_RETURN_TRUE;
}

/* Return a key that is smaller for a larger score, and equal for an equal one. */
static uint64_t key_of(double score, int single) {
    uint64_t bits;
    uint32_t half;
    float rounded = (float)score + 0.0f; /* the negative zero becomes the positive one */
    score += 0.0;
    if (single) {
        memcpy(&half, &rounded, 4);
        return half >> 31 ? half : ~half & INT32_MAX;
    }
    memcpy(&bits, &score, 8);
    return bits >> 63 ? bits : ~bits & INT64_MAX;
}

/* Count the keys by the value of each byte. */
static void count_bytes(uint32_t counts[][256], const Topic *topic) {
    memset(counts, 0, (size_t)topic->bytes * sizeof *counts);
    for (Py_ssize_t i = 0; i < topic->number; i++)
        for (int byte = 0; byte < topic->bytes; byte++)
            counts[byte][topic->keys[i].key >> 8 * byte & 255]++;
}

/* Sort keys by one of their bytes, and keep the order of equal ones. counts: of this byte. */
static void sort_by_byte(Topic *topic, uint32_t *counts, int byte) {
    uint32_t start = 0;
    Key *from = topic->keys, *to = topic->spare;
    for (int value = 0; value < 256; value++) {
        uint32_t count = counts[value];
        counts[value] = start;
        start += count;
    }
    for (Py_ssize_t i = 0; i < topic->number; i++)
        to[counts[from[i].key >> 8 * byte & 255]++] = from[i];
    topic->keys = to;
    topic->spare = from;
}

/* Sort documents by descending score. Those of a run usually have the right order already. */
static void sort(Topic *topic) {
    uint32_t counts[8][256];
    Py_ssize_t ordered = 1;
    while (ordered < topic->number && topic->keys[ordered - 1].key <= topic->keys[ordered].key)
        ordered++;
    if (ordered >= topic->number)
        return;
    count_bytes(counts, topic);
    for (int byte = 0; byte < topic->bytes; byte++)
        if (counts[byte][topic->keys[0].key >> 8 * byte & 255] < topic->number)
            sort_by_byte(topic, counts[byte], byte);
}

/* Compare for descending ids. The order of code points is that of the bytes in UTF-8. */
static int by_id(const void *left, const void *right) {
    return PyUnicode_Compare((*(Retrieved *const *)right)->id, (*(Retrieved *const *)left)->id);
}

/* Return the index of a document in the pool plus 1, or 0 if it is not there. `valid` becomes 0 for others. */
static uint32_t index_in(PyObject *pool, PyObject *id, int *valid) {
    PyObject *index = PyDict_GetItemWithError(pool, id);
    if (index == NULL) {
        *valid &= !PyErr_Occurred();
        return 0;
    }
    int overflow;
    long number = PyLong_Check(index) ? PyLong_AsLongAndOverflow(index, &overflow) : -1;
    *valid &= number >= 0 && number < INT32_MAX;
    return (uint32_t)number + 1;
}

/* Fill the documents and keys of a topic. Return whether all ids, scores and indexes are valid. */
static int read_table(Topic *topic, PyObject *table, PyObject *pool) {
    PyObject *id, *object;
    double score;
    int valid = 1;
    Py_ssize_t place = 0;
    for (uint32_t i = 0; PyDict_Next(table, &place, &id, &object); i++) {
        if (!PyUnicode_CheckExact(id) || !number_of(object, &score))
            return 0;
        topic->documents[i] = (Retrieved){id, index_in(pool, id, &valid)};
        topic->keys[i] = (Key){key_of(score, topic->bytes == 4), i};
        topic->hits += topic->documents[i].pooled > 0;
    }
    return valid;
}

/* Write the index, the rank, and the first and last rank of the tie group of each hit: int32[4, hits].
 * `group` has room for the largest tie group. */
static void write_hits(int32_t *columns, const Topic *topic, Retrieved **group) {
    Py_ssize_t hits = topic->hits, at = 0;
    for (Py_ssize_t first = 0, end; first < topic->number; first = end) {
        int pooled = 0;
        for (end = first; end < topic->number && topic->keys[end].key == topic->keys[first].key; end++) {
            group[end - first] = &topic->documents[topic->keys[end].place];
            pooled |= group[end - first]->pooled > 0;
        }
        if (pooled && end - first > 1)
            qsort(group, (size_t)(end - first), sizeof *group, by_id);
        for (Py_ssize_t i = first; pooled && i < end; i++) {
            if (group[i - first]->pooled == 0)
                continue;
            columns[at] = (int32_t)(group[i - first]->pooled - 1);
            columns[hits + at] = (int32_t)(i + 1);
            columns[2 * hits + at] = (int32_t)(first + 1);
            columns[3 * hits + at] = (int32_t)end;
            at++;
        }
    }
}

/* hits(table, pool, single): see _tables.pyi. */
static PyObject *hits_of(PyObject *self, PyObject *args) {
    (void)self;
    PyObject *table, *pool, *result = NULL;
    int single;
    if (!PyArg_ParseTuple(args, "O!O!p", &PyDict_Type, &table, &PyDict_Type, &pool, &single))
        return NULL;
    Py_ssize_t number = PyDict_GET_SIZE(table);
    Topic topic = {PyMem_New(Retrieved, number), PyMem_New(Key, number), PyMem_New(Key, number), number, 0, single ? 4 : 8};
    Retrieved **group = PyMem_New(Retrieved *, number);
    if (topic.documents == NULL || topic.keys == NULL || topic.spare == NULL || group == NULL)
        PyErr_NoMemory();
    else if (number > INT32_MAX || !read_table(&topic, table, pool))
        result = PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    else if ((result = PyBytes_FromStringAndSize(NULL, topic.hits * 16)) != NULL) {
        sort(&topic);
        write_hits((int32_t *)PyBytes_AS_STRING(result), &topic, group);
    }
    PyMem_Free(topic.documents), PyMem_Free(topic.keys), PyMem_Free(topic.spare), PyMem_Free(group);
    return result;
}

static PyMethodDef functions[] = {
    {"has_scores", has_scores, METH_O, "Return whether all ids are strings and all scores are numbers."},
    {"hits", hits_of, METH_VARARGS, "Rank the documents of a table, and return those of the pool."},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_tables", "Rankings of tables of scores, compiled.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__tables(void) {
    return PyModule_Create(&definition);
}
