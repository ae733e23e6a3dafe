! check_queue.f90, MOUNT PLAIN: each function of the module eddy, on a mount with run/step-00 to step-15; PLAIN is no eddyfs.
program queue_checks
    use eddy
    use, intrinsic :: iso_c_binding, only: c_int, c_int64_t
    implicit none
    integer(c_int), parameter :: EINVAL = 22, ENODEV = 19, EXDEV = 18, ENOENT = 2, ETIMEDOUT = 110
    type(eddy_queue) :: queue, none
    type(eddy_stats) :: stats
    character(4000) :: mount, plain, steps(16)
    integer :: i

    call get_command_argument(1, mount)
    call get_command_argument(2, plain)
    do i = 0, 15
        write (steps(i + 1), '(a, i2.2)') trim(mount) // "/run/step-", i
    end do

    call expect("no eddyfs", int(eddy_queue_open(plain, none), c_int64_t), int(-ENODEV, c_int64_t))
    call expect("a queue that is none", eddy_queue_append(none, steps(1)), int(-EINVAL, c_int64_t))
    call eddy_queue_close(none)

    call expect("open", int(eddy_queue_open(mount, queue, eddy_queue_any_reader), c_int64_t), 0_c_int64_t)
    call expect("many hints", eddy_queue_append_many(queue, steps), 0_c_int64_t)
    call expect("a hint of a range", eddy_queue_append(queue, steps(1), 4096_c_int64_t, 4096_c_int64_t), 16_c_int64_t)
    call expect("another file system", eddy_queue_append(queue, trim(plain) // "/file"), int(-EXDEV, c_int64_t))
    call expect("not started", int(eddy_queue_wait(queue, 0_c_int64_t, 100), c_int64_t), int(-ETIMEDOUT, c_int64_t))
    call expect("start", int(eddy_queue_start(queue), c_int64_t), 0_c_int64_t)
    do i = 0, 16
        call expect("wait", int(eddy_queue_wait(queue, int(i, c_int64_t), 30000), c_int64_t), 0_c_int64_t)
    end do
    call expect("no such hint", int(eddy_queue_wait(queue, 17_c_int64_t), c_int64_t), int(-ENOENT, c_int64_t))
    call expect("stop", int(eddy_queue_stop(queue), c_int64_t), 0_c_int64_t)
    call expect("stats", int(eddy_queue_stats(queue, stats), c_int64_t), 0_c_int64_t)
    call expect("hints", stats%hints, 17_c_int64_t)
    call expect("that are ahead", stats%ahead, 17_c_int64_t)
    call expect("consumed", int(eddy_queue_consumed(queue, 0_c_int64_t), c_int64_t), 0_c_int64_t)
    call expect("cancel", int(eddy_queue_cancel(queue, 1_c_int64_t), c_int64_t), 0_c_int64_t)
    call expect("all consumed", int(eddy_queue_wait(queue, eddy_queue_all_consumed, 30000), c_int64_t), 0_c_int64_t)
    call expect("stats again", int(eddy_queue_stats(queue, stats), c_int64_t), 0_c_int64_t)
    call expect("that were read", stats%consumed, 1_c_int64_t)
    call expect("that were taken back", stats%cancelled, 16_c_int64_t)
    call eddy_queue_close(queue)
    call eddy_queue_close(queue)

contains

    subroutine expect(what, got, wanted)
        character(*), intent(in) :: what
        integer(c_int64_t), intent(in) :: got, wanted
        if (got == wanted) return
        print '(3a, i0, a, i0)', "FAILED: ", what, ": got ", got, ", expected ", wanted
        error stop 1
    end subroutine

end program
