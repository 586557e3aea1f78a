/* Python interface of _reader.h. It takes buffers, returns bytes, and releases the interpreter lock while reading. */
#define _GNU_SOURCE 1
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_reader.h"

/* ------------------------------------------------------------------------------------------------ Index */

typedef struct {
    PyObject_HEAD
    Index index;
    Py_buffer views[5];
    int held;
} IndexObject;

static void index_dealloc(IndexObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    index_close(&self->index);
    for (int i = 0; i < self->held; i++)
        PyBuffer_Release(self->views + i);
    type->tp_free(self);
    Py_DECREF(type);
}

/* Get the buffers of the arguments. Return 0, with an exception set, if their lengths are inconsistent. */
static int index_views(IndexObject *self, PyObject *args) {
    Py_buffer seed;
    PyObject *given[5];
    if (!PyArg_ParseTuple(args, "OOOOOy*", given, given + 1, given + 2, given + 3, given + 4, &seed))
        return 0;
    int right = seed.len == sizeof self->index.seed;
    if (right)
        memcpy(self->index.seed, seed.buf, sizeof self->index.seed);
    PyBuffer_Release(&seed);
    for (; self->held < 5; self->held++)
        if (PyObject_GetBuffer(given[self->held], self->views + self->held, PyBUF_C_CONTIGUOUS) < 0)
            return 0;
    for (int i = 1; i < 5; i += i < 3 ? 2 : 1) /* starts, name_starts, offsets */
        right &= self->views[i].len >= 8 && self->views[i].len % 8 == 0 && (uintptr_t)self->views[i].buf % 8 == 0;
    if (!right || self->views[3].len != self->views[4].len) {
        PyErr_SetString(PyExc_ValueError, "expected int64 buffers with one entry more than there are ids");
        return 0;
    }
    return 1;
}

static PyObject *index_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    IndexObject *self = (IndexObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    if (!index_views(self, args)) {
        Py_DECREF(self);
        return NULL;
    }
    Index *index = &self->index;
    index->blob = self->views[0].buf, index->starts = self->views[1].buf;
    index->names = self->views[2].buf, index->name_starts = self->views[3].buf;
    index->offsets = self->views[4].buf;
    index->documents = self->views[1].len / 8 - 1, index->topics = self->views[3].len / 8 - 1;
    enum Status status;
    Py_BEGIN_ALLOW_THREADS;
    status = index_open(index, self->views[0].len, self->views[2].len);
    Py_END_ALLOW_THREADS;
    if (status == READING)
        return (PyObject *)self;
    Py_DECREF(self);
    if (status == NO_MEMORY)
        return PyErr_NoMemory();
    PyErr_SetString(PyExc_ValueError,
                    "starts and offsets must ascend from 0 to the number of entries that they divide");
    return NULL;
}

static PyType_Slot index_slots[] = {
    {Py_tp_new, index_new},
    {Py_tp_dealloc, index_dealloc},
    {Py_tp_doc, "Index(blob, starts, names, name_starts, offsets, seed): lookup tables of qrels"},
    {0, NULL},
};
static PyType_Spec index_spec = {"cupel_measures.native._reader.Index", sizeof(IndexObject), 0,
                                 Py_TPFLAGS_DEFAULT, index_slots};
static PyTypeObject *IndexType;

/* --------------------------------------------------------------------------------------------- results */

/* Return (retrieved, offsets, document, rank, first, last) as bytes, ordered by row. */
static PyObject *result_of(const Joined *joined, int64_t rows) {
    Py_ssize_t hits = (Py_ssize_t)joined->count;
    PyObject *parts[6] = {NULL}, *result = NULL;
    for (int i = 0; i < 6; i++)
        if (!(parts[i] = PyBytes_FromStringAndSize(NULL, i < 2 ? ((Py_ssize_t)rows + i) * 8 : hits * 4)))
            goto end;
    int64_t *retrieved = (int64_t *)PyBytes_AS_STRING(parts[0]), *offsets = (int64_t *)PyBytes_AS_STRING(parts[1]);
    int32_t *columns[4];
    for (int i = 0; i < 4; i++)
        columns[i] = (int32_t *)PyBytes_AS_STRING(parts[2 + i]);
    size_t at = 0;
    for (int64_t row = 0; row < rows; row++) {
        retrieved[row] = joined->retrieved[row] == FREE ? 0 : joined->retrieved[row];
        offsets[row] = (int64_t)at;
        const Hit *hit = joined->hits + joined->row_start[row];
        for (int64_t i = 0; i < joined->row_count[row]; i++, hit++, at++) {
            columns[0][at] = hit->document, columns[1][at] = hit->rank;
            columns[2][at] = hit->first, columns[3][at] = hit->last;
        }
    }
    offsets[rows] = (int64_t)at;
    result = PyTuple_Pack(6, parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]);
end:
    for (int i = 0; i < 6; i++)
        Py_XDECREF(parts[i]);
    return result;
}

/* ---------------------------------------------------------------------------------------------- Reader */

typedef struct {
    PyObject_HEAD
    Reader reader;
    PyObject *index;
    int busy;
} ReaderObject;

static void reader_dealloc(ReaderObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    reader_close(&self->reader);
    Py_XDECREF(self->index);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *reader_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
    (void)keywords;
    PyObject *index;
    int single;
    long long depth;
    Py_ssize_t line, lines, topics, deepest;
    if (!PyArg_ParseTuple(args, "O!pLnnnn", IndexType, &index, &single, &depth, &line, &lines, &topics, &deepest))
        return NULL;
    if (line < 0 || lines < 0 || topics < 0 || deepest < 0 || deepest > INT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "limits must be at least 0, and the limit on depth at most 2^31 - 1");
        return NULL;
    }
    ReaderObject *self = (ReaderObject *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    Py_INCREF(index);
    self->index = index;
    Limits limits = {(size_t)line, (size_t)lines, (size_t)topics, (size_t)deepest};
    if (reader_open(&self->reader, &((IndexObject *)index)->index, limits, single, depth)) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static PyObject *reader_feed_method(ReaderObject *self, PyObject *args) {
    Py_buffer buffer;
    Py_ssize_t given;
    int last;
    if (!PyArg_ParseTuple(args, "w*np", &buffer, &given, &last))
        return NULL;
    if (self->busy || given < 0 || given > buffer.len - PADDING - 1 || (size_t)given < self->reader.scanned) {
        PyBuffer_Release(&buffer);
        PyErr_SetString(PyExc_ValueError,
                        "the buffer must contain the kept bytes and padding, and only one thread may use the reader");
        return NULL;
    }
    size_t filled = (size_t)given;
    uint8_t *bytes = buffer.buf;
    if (last && filled && bytes[filled - 1] != '\n')
        bytes[filled++] = '\n';
    enum Status status;
    self->busy = 1;
    Py_BEGIN_ALLOW_THREADS;
    status = reader_feed(&self->reader, bytes, &filled, last);
    Py_END_ALLOW_THREADS;
    self->busy = status != READING;
    PyBuffer_Release(&buffer);
    return status == NO_MEMORY ? PyErr_NoMemory() : PyLong_FromSsize_t(status ? -1 : (Py_ssize_t)filled);
}

static PyObject *reader_unknown_topics(ReaderObject *self, PyObject *ignored) {
    (void)ignored;
    return PyLong_FromSize_t(self->reader.unknown_count);
}

static PyObject *reader_result(ReaderObject *self, PyObject *ignored) {
    (void)ignored;
    return result_of(&self->reader.joined, self->reader.index->topics);
}

static PyMethodDef reader_methods[] = {
    {"feed", (PyCFunction)reader_feed_method, METH_VARARGS,
     "feed(buffer, filled, last) -> number of bytes kept at the start of the buffer, or -1 if the run is declined"},
    {"unknown_topics", (PyCFunction)reader_unknown_topics, METH_NOARGS,
     "unknown_topics() -> number of topics of the run that the qrels lack"},
    {"result", (PyCFunction)reader_result, METH_NOARGS,
     "result() -> (retrieved, offsets, document, rank, first, last) as bytes"},
    {NULL, NULL, 0, NULL},
};
static PyType_Slot reader_slots[] = {
    {Py_tp_new, reader_new},
    {Py_tp_dealloc, reader_dealloc},
    {Py_tp_methods, reader_methods},
    {Py_tp_doc, "Reader(index, single_precision, depth, line, lines, topics, documents): reader of one run"},
    {0, NULL},
};
static PyType_Spec reader_spec = {"cupel_measures.native._reader.Reader", sizeof(ReaderObject), 0,
                                  Py_TPFLAGS_DEFAULT, reader_slots};

/* ------------------------------------------------------------------------------------------------ join */

static PyObject *join(PyObject *module, PyObject *args) {
    (void)module;
    Py_buffer blob, starts, rows, offsets, scores;
    PyObject *index, *result = NULL;
    int single;
    long long depth;
    if (!PyArg_ParseTuple(args, "O!y*y*y*y*y*pL", IndexType, &index, &blob, &starts, &rows, &offsets, &scores,
                          &single, &depth))
        return NULL;
    Columns columns = {blob.buf,   blob.len,       rows.buf, offsets.buf, starts.buf, scores.buf,
                       rows.len / 8, scores.len / 8, single};
    Joined joined = {0};
    enum Status status = DECLINED;
    uintptr_t places = (uintptr_t)rows.buf | (uintptr_t)offsets.buf | (uintptr_t)starts.buf | (uintptr_t)scores.buf;
    if (places % 8 == 0 && rows.len % 8 == 0 && scores.len % 8 == 0 && starts.len == scores.len + 8 && offsets.len == rows.len + 8) {
        Py_BEGIN_ALLOW_THREADS;
        status = join_columns(&columns, &((IndexObject *)index)->index, &joined, depth);
        Py_END_ALLOW_THREADS;
    }
    if (status == READING)
        result = result_of(&joined, ((IndexObject *)index)->index.topics);
    else if (status == NO_MEMORY)
        PyErr_NoMemory();
    else
        PyErr_SetString(PyExc_ValueError,
                        "the columns of the ranking are not aligned, or do not fit each other or the qrels");
    joined_close(&joined);
    PyBuffer_Release(&blob), PyBuffer_Release(&starts), PyBuffer_Release(&rows);
    PyBuffer_Release(&offsets), PyBuffer_Release(&scores);
    return result;
}

static PyMethodDef functions[] = {
    {"join", join, METH_VARARGS, "join(index, blob, starts, rows, offsets, scores, single_precision, depth)"},
    {NULL, NULL, 0, NULL},
};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_reader", "Compiled reader of runs, which joins them with qrels.", -1, functions,
    NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__reader(void) {
    PyObject *module = PyModule_Create(&definition), *reader;
    if (!module)
        return NULL;
    if (!plain_locale && !(plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0)))
        goto fail;
    if (!(IndexType = (PyTypeObject *)PyType_FromSpec(&index_spec)) ||
        PyModule_AddObjectRef(module, "Index", (PyObject *)IndexType) < 0 || !(reader = PyType_FromSpec(&reader_spec)))
        goto fail;
    int added = PyModule_AddObjectRef(module, "Reader", reader);
    Py_DECREF(reader);
    if (added == 0 && PyModule_AddIntConstant(module, "PADDING", PADDING + 1) == 0)
        return module;
fail:
    if (!PyErr_Occurred())
        PyErr_NoMemory();
    Py_DECREF(module);
    return NULL;
}
