! eddy.f90 - the module eddy: libeddy for Fortran.  eddy.h says what each function does.
!
!     use eddy
!     type(eddy_queue) :: queue
!     if (eddy_queue_open("/mnt/data", queue) == 0) then
!         seq = eddy_queue_append(queue, "/mnt/data/step-40")
!         err = eddy_queue_start(queue)
!     end if
!     ... read the files, in this order ...
!     call eddy_queue_close(queue)
!
! Compilers do not read each other's modules, so this source is what is installed:
!     gfortran eddy.f90 program.f90 $(pkg-config --cflags --libs libeddy)
!
! Functions return 0 or more, or a negative errno.  Blanks at the end of a path are no part of it.  Offsets and lengths are
! bytes; the default is the whole file.  A queue that was not opened (or could not be) gives -EINVAL, and may be closed.
! Any thread may call any function, but eddy_queue_close is the last call with a queue; it may be called again by the same
! thread.
module eddy
    use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int64_t, c_loc, c_null_char, c_null_ptr, c_ptr, c_size_t, c_sizeof
    implicit none
    private

    integer(c_int), parameter, public :: eddy_queue_any_reader = 1
    integer(c_int64_t), parameter, public :: eddy_queue_all_consumed = -1

    type, public :: eddy_queue
        private
        type(c_ptr) :: handle = c_null_ptr
    end type

    ! As struct eddy_queue_stats.
    type, bind(c), public :: eddy_stats
        integer(c_int64_t) :: hints = 0, cancelled = 0, consumed = 0, admitted = 0, ahead = 0, absent = 0
        integer(c_int64_t) :: ahead_bytes = 0, fetched_bytes = 0
    end type

    type, bind(c) :: c_hint
        type(c_ptr) :: path
        integer(c_int64_t) :: off, len
    end type

    public :: eddy_queue_open, eddy_queue_append, eddy_queue_append_many, eddy_queue_start, eddy_queue_stop
    public :: eddy_queue_consumed, eddy_queue_wait, eddy_queue_cancel, eddy_queue_stats, eddy_queue_close

    interface
        integer(c_int) function c_open(path, flags, queue) bind(c, name="eddy_queue_open")
            import :: c_char, c_int, c_ptr
            character(kind=c_char), intent(in) :: path(*)
            integer(c_int), value :: flags
            type(c_ptr), intent(out) :: queue
        end function
        integer(c_int64_t) function c_append_many(queue, hints, n) bind(c, name="eddy_queue_append_many")
            import :: c_hint, c_int64_t, c_ptr, c_size_t
            type(c_ptr), value :: queue
            type(c_hint), intent(in) :: hints(*)
            integer(c_size_t), value :: n
        end function
        integer(c_int) function c_start(queue) bind(c, name="eddy_queue_start")
            import :: c_int, c_ptr
            type(c_ptr), value :: queue
        end function
        integer(c_int) function c_stop(queue) bind(c, name="eddy_queue_stop")
            import :: c_int, c_ptr
            type(c_ptr), value :: queue
        end function
        integer(c_int) function c_consumed(queue, seq) bind(c, name="eddy_queue_consumed")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: queue
            integer(c_int64_t), value :: seq
        end function
        integer(c_int) function c_wait(queue, seq, timeout_ms) bind(c, name="eddy_queue_wait")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: queue
            integer(c_int64_t), value :: seq
            integer(c_int), value :: timeout_ms
        end function
        integer(c_int) function c_cancel(queue, seq) bind(c, name="eddy_queue_cancel")
            import :: c_int, c_int64_t, c_ptr
            type(c_ptr), value :: queue
            integer(c_int64_t), value :: seq
        end function
        integer(c_int) function c_stats(queue, out, size) bind(c, name="eddy_queue_stats")
            import :: c_int, c_ptr, c_size_t, eddy_stats
            type(c_ptr), value :: queue
            type(eddy_stats), intent(out) :: out
            integer(c_size_t), value :: size
        end function
        subroutine c_close(queue) bind(c, name="eddy_queue_close")
            import :: c_ptr
            type(c_ptr), value :: queue
        end subroutine
    end interface

contains

    ! flags: 0 or eddy_queue_any_reader.
    integer(c_int) function eddy_queue_open(path_in_mount, queue, flags) result(err)
        character(*), intent(in) :: path_in_mount
        type(eddy_queue), intent(out) :: queue
        integer(c_int), intent(in), optional :: flags
        integer(c_int) :: given
        given = 0
        if (present(flags)) given = flags
        err = c_open(trim(path_in_mount) // c_null_char, given, queue%handle)
        if (err < 0) queue%handle = c_null_ptr
    end function

    ! The hint's number, or a negative errno.
    integer(c_int64_t) function eddy_queue_append(queue, path, off, len) result(seq)
        type(eddy_queue), intent(in) :: queue
        character(*), intent(in) :: path
        integer(c_int64_t), intent(in), optional :: off, len
        character(:), allocatable, target :: text
        type(c_hint) :: hint(1)
        text = trim(path) // c_null_char
        hint(1) = c_hint(c_loc(text), 0, 0)
        if (present(off)) hint(1)%off = off
        if (present(len)) hint(1)%len = len
        seq = c_append_many(queue%handle, hint, 1_c_size_t)
    end function

    ! Whole files, all or none.  The first hint's number, or a negative errno.
    integer(c_int64_t) function eddy_queue_append_many(queue, paths) result(seq)
        type(eddy_queue), intent(in) :: queue
        character(*), intent(in) :: paths(:)
        character(len(paths) + 1), allocatable, target :: texts(:)
        type(c_hint), allocatable :: hints(:)
        integer :: i
        allocate (texts(size(paths)), hints(size(paths)))
        do i = 1, size(paths)
            texts(i) = trim(paths(i)) // c_null_char
            hints(i) = c_hint(c_loc(texts(i)), 0, 0)
        end do
        seq = c_append_many(queue%handle, hints, size(paths, kind=c_size_t))
    end function

    integer(c_int) function eddy_queue_start(queue) result(err)
        type(eddy_queue), intent(in) :: queue
        err = c_start(queue%handle)
    end function

    integer(c_int) function eddy_queue_stop(queue) result(err)
        type(eddy_queue), intent(in) :: queue
        err = c_stop(queue%handle)
    end function

    integer(c_int) function eddy_queue_consumed(queue, seq) result(err)
        type(eddy_queue), intent(in) :: queue
        integer(c_int64_t), intent(in) :: seq
        err = c_consumed(queue%handle, seq)
    end function

    ! timeout_ms: the default is to wait as long as it takes.
    integer(c_int) function eddy_queue_wait(queue, seq, timeout_ms) result(err)
        type(eddy_queue), intent(in) :: queue
        integer(c_int64_t), intent(in) :: seq
        integer(c_int), intent(in), optional :: timeout_ms
        integer(c_int) :: ms
        ms = -1
        if (present(timeout_ms)) ms = timeout_ms
        err = c_wait(queue%handle, seq, ms)
    end function

    integer(c_int) function eddy_queue_cancel(queue, from_seq) result(err)
        type(eddy_queue), intent(in) :: queue
        integer(c_int64_t), intent(in) :: from_seq
        err = c_cancel(queue%handle, from_seq)
    end function

    integer(c_int) function eddy_queue_stats(queue, stats) result(err)
        type(eddy_queue), intent(in) :: queue
        type(eddy_stats), intent(out) :: stats
        err = c_stats(queue%handle, stats, c_sizeof(stats))
    end function

    subroutine eddy_queue_close(queue)
        type(eddy_queue), intent(inout) :: queue
        call c_close(queue%handle)
        queue%handle = c_null_ptr
    end subroutine

end module
